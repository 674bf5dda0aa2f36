// The page: sends where the pointer is, and draws what the server says.
import { connect } from './connection.js'

const status = document.getElementById('state')
const scores = document.getElementById('scores')
const canvas = document.getElementById('field')
const pen = canvas.getContext('2d')

let own_id = null
let lobby_id = ''

const connection = await connect({
  welcome(seat, id) {
    lobby_id = seat.lobby.lobby_id
    own_id = id
  },
  update: show,
  end: (reason) => {
    status.textContent = `${reason} Reload the page to play again.`
  },
}).catch((error) => {
  status.textContent = `${error.code ?? 'ERROR'}: ${error.message}`
  throw error
})

canvas.addEventListener('pointermove', (event) => {
  const { left, top, width, height } = canvas.getBoundingClientRect()
  const x = (event.clientX - left) / width
  const y = (event.clientY - top) / height
  connection.send(`${x.toFixed(4)} ${y.toFixed(4)}`)
})

function show({ star, players }) {
  status.textContent = `Lobby ${lobby_id} · ${players.length} ${players.length === 1 ? 'player' : 'players'}`
  pen.clearRect(0, 0, canvas.width, canvas.height)
  circle(star, 12, 'hsl(48 100% 65%)', 40)
  for (const player of players) {
    circle(player, 16, `hsl(${player.hue} 85% 60%)`, player.id === own_id ? 30 : 8)
  }
  scores.replaceChildren(...players.map(scoreOf))
}

function circle({ x, y }, radius, color, glow) {
  pen.beginPath()
  pen.fillStyle = color
  pen.shadowColor = color
  pen.shadowBlur = glow
  pen.arc(x * canvas.width, y * canvas.height, radius, 0, 2 * Math.PI)
  pen.fill()
}

function scoreOf({ id, hue, score }) {
  const item = document.createElement('li')
  item.style.color = `hsl(${hue} 85% 70%)`
  item.textContent = `${id === own_id ? 'you' : `player ${id}`} ${score}`
  return item
}
