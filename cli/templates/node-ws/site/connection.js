// Finds a lobby and keeps the connection to its server.
import { createClient, socketUrl } from './sdk/browser.js'

export async function connect({ welcome, update, end }) {
  const seat = await createClient().find({ game_modes: ['default'] })
  const socket = new WebSocket(socketUrl(seat.ports.game, '/', { token: seat.player.token }))
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data)
    if (message.id === undefined) update(message)
    else welcome(seat, message.id)
  }
  socket.onclose = () => end('The connection has ended.')
  return {
    send: (text) => socket.readyState === WebSocket.OPEN && socket.send(text),
  }
}
