// The server of one lobby. The platform starts it when players come, and ends it some time after they have left.
import { WebSocketServer } from 'ws'
import { createGame } from './game.js'
import { openLobby } from './sdk/server.js'

const STEP_MS = 50
const MESSAGE_BYTES_MAX = 64

const lobby = openLobby()
const game = createGame()
const sockets = new Set()
const server = new WebSocketServer({
  host: '127.0.0.1',
  port: lobby.port('game'),
  perMessageDeflate: false,
  maxPayload: MESSAGE_BYTES_MAX,
})

server.on('listening', () => lobby.ready()) // The first players wait for this.

server.on('connection', async (socket, request) => {
  const token = new URLSearchParams(request.url.split('?')[1]).get('token') ?? ''
  const giveSeatBack = () => lobby.disconnected(token).catch(console.error)
  socket.on('error', console.error)
  try {
    await lobby.connected(token) // Until then the connection may do nothing.
  } catch (error) {
    return socket.close(4001, error.code)
  }
  if (socket.readyState !== socket.OPEN) return giveSeatBack()

  const id = game.enter()
  sockets.add(socket)
  socket.send(JSON.stringify({ id }))
  socket.on('message', (message) => game.steer(id, message))
  socket.on('close', () => {
    sockets.delete(socket)
    game.leave(id)
    giveSeatBack()
  })
})

setInterval(() => {
  game.step(STEP_MS / 1000)
  const state = JSON.stringify(game.state())
  for (const socket of sockets) socket.send(state)
}, STEP_MS)
