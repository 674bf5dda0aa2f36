// Finds a lobby, connects to its server, and shows what the server sends.
import { io } from './socket.io.js'

const status = document.getElementById('state')
const pond = document.getElementById('pond')
const scores = document.getElementById('scores')

const seat = await findSeat().catch((error) => {
  status.textContent = error.message
  throw error
})
const { origin, pathname } = new URL(seat.ports.game.url)
const socket = io(origin, {
  path: `${pathname.replace(/\/$/, '')}/socket.io/`,
  query: { player_token: seat.player.token },
})
socket.on('connect', () => {
  status.textContent = `Lobby ${seat.lobby.lobby_id}`
})
socket.on('disconnect', () => {
  status.textContent = 'The connection is lost. Trying again …'
})
socket.on('connect_error', () => {
  status.textContent = 'The lobby cannot be reached. Trying again …'
})
socket.on('state', show)

/** The seat and its token. The address of this page stands for the game. */
async function findSeat() {
  const { matchmaker_url } = await (await fetch('/.well-known/muster.json')).json()
  const response = await fetch(`${matchmaker_url}/matchmaker/lobbies/find`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ game_modes: ['default'] }),
  })
  const body = await response.json()
  if (!response.ok) throw new Error(`${body.code}: ${body.message}`)
  return body
}

function show({ bubble, scores: list }) {
  const button = document.createElement('button')
  button.type = 'button'
  button.setAttribute('aria-label', `Bubble ${bubble.number}`)
  button.style.left = `calc(${bubble.x} * (100% - 4rem))`
  button.style.top = `calc(${bubble.y} * (100% - 4rem))`
  button.addEventListener('click', () => socket.emit('pop', bubble.number))
  pond.replaceChildren(button)
  scores.replaceChildren(...list.map(scoreOf))
}

function scoreOf([id, points], index) {
  const item = document.createElement('li')
  const is_you = id === socket.id
  item.className = is_you ? 'you' : ''
  item.textContent = `${is_you ? 'you' : `player ${index + 1}`}: ${points}`
  return item
}
