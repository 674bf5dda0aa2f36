// Finds a lobby and keeps the connection to its server.
import { createClient } from './sdk/browser.js'
import { io } from './socket.io.js'

export async function connect({ welcome, update, end }) {
  const seat = await createClient().find({ game_modes: ['default'] })
  const { origin, pathname } = new URL(seat.ports.game.url)
  const socket = io(origin, {
    path: `${pathname.replace(/\/$/, '')}/socket.io/`,
    query: { player_token: seat.player.token },
    reconnection: false, // A seat is used once. A page that was disconnected asks for another one.
    transports: ['websocket'],
  })
  socket.on('welcome', (id) => welcome(seat, id))
  socket.on('state', update)
  socket.on('disconnect', () => end('The connection has ended.'))
  socket.on('connect_error', ({ message }) => end(`The lobby cannot be reached: ${message}.`))
  return { send: (text) => socket.volatile.emit('steer', text) }
}
