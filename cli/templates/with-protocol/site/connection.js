// Finds a lobby, reads its state as server-sent events, and sends where the pointer is.
import { createClient } from './sdk/browser.js'

const SEND_MS = 50

export async function connect({ welcome, update, end }) {
  const seat = await createClient().find({ game_modes: ['default'] })
  const addressOf = (path) => `${seat.ports.game.url.replace(/\/$/, '')}${path}?player_token=${seat.player.token}`
  const events = new EventSource(addressOf('/events'))
  events.onmessage = ({ data }) => {
    const message = JSON.parse(data)
    if (message.id === undefined) update(message)
    else welcome(seat, message.id)
  }
  events.onerror = () => {
    events.close() // A page that was disconnected asks for another seat.
    end('The connection has ended.')
  }
  let next = null
  setInterval(() => {
    if (next !== null) fetch(addressOf('/steer'), { method: 'POST', body: next }).catch(() => {})
    next = null
  }, SEND_MS)
  return {
    send: (text) => {
      next = text
    },
  }
}
