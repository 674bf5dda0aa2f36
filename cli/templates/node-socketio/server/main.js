// The server of one lobby: ordinary Socket.IO. The platform starts it when players come, and ends it some time after they
// have left.
import { createServer } from 'node:http'
import { Server } from 'socket.io'
import { createGame } from './game.js'

const STEP_MS = 50
const MESSAGE_BYTES_MAX = 1024

const game = createGame()
const http = createServer()
// The page comes from another host than the server. The player token of each connection is what keeps strangers out.
const io = new Server(http, { cors: { origin: '*' }, maxHttpBufferSize: MESSAGE_BYTES_MAX })

io.on('connection', (socket) => {
  const id = game.enter()
  socket.emit('welcome', id)
  socket.on('steer', (message) => game.steer(id, message))
  socket.on('disconnect', () => game.leave(id))
})

setInterval(() => {
  game.step(STEP_MS / 1000)
  io.volatile.emit('state', game.state())
}, STEP_MS)

http.listen(Number(process.env.PORT ?? 7777))
