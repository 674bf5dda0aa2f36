// Bubbles: one at a time, and the first who pops it has a point.
import { createServer } from 'node:http'
import { Server } from 'socket.io'

const http = createServer()
// The page comes from another host.
const io = new Server(http, { cors: { origin: '*' }, maxHttpBufferSize: 1024 })
/** By socket id. */
const scores = new Map()
let bubble = newBubble(1)

io.on('connection', (socket) => {
  scores.set(socket.id, 0)
  socket.on('pop', (number) => {
    if (number !== bubble.number) return
    scores.set(socket.id, scores.get(socket.id) + 1)
    bubble = newBubble(number + 1)
    send()
  })
  socket.on('disconnect', () => {
    scores.delete(socket.id)
    send()
  })
  send()
})

function newBubble(number) {
  return { number, x: Math.random(), y: Math.random() }
}

function send() {
  io.emit('state', { bubble, scores: [...scores] })
}

const { PORT = '3000', HOST = '127.0.0.1' } = process.env
http.listen(PORT, HOST, () => console.log(`listening on ${HOST}:${PORT}`))
process.on('SIGTERM', () => io.close())
