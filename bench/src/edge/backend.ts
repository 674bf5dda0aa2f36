// The lobby server of this bench, in its own process: HTTP, WebSocket and TCP on one port, UDP on another. It does as little
// as possible. It prints its two ports, and exits when its standard input ends.
import { createHash } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

const BODY = Buffer.alloc(128, 'x')
const ANSWER = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
)
const ACCEPT = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** RFC 6455: a masked text frame below 126 bytes has two bytes of head and four of mask. */
const HEAD_BYTES = 2
const MASK_BYTES = 4

const server = createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => {})
  socket.once('data', (first) => {
    const text = first.toString('latin1')
    const key = /^sec-websocket-key: (.*)$/im.exec(text)?.[1]?.trim()
    if (key !== undefined) speakWebSocket(socket, key)
    else if (/^[A-Z]+ \//.test(text)) speakHttp(socket, text)
    else {
      socket.write(first)
      socket.pipe(socket)
    }
  })
})

/** Requests have no bodies. */
function speakHttp(socket: Socket, first: string): void {
  let text = ''
  const read = (chunk: string): void => {
    text += chunk
    for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
      text = text.slice(end + 4)
      socket.write(ANSWER)
    }
  }
  read(first)
  socket.on('data', (chunk) => read(chunk.toString('latin1')))
}

function speakWebSocket(socket: Socket, key: string): void {
  const accept = createHash('sha1')
    .update(key + ACCEPT)
    .digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
  socket.on('data', (frame: Buffer) => {
    const length = frame[1]! & 0x7f
    const mask = frame.subarray(HEAD_BYTES, HEAD_BYTES + MASK_BYTES)
    const answer = Buffer.from(frame.subarray(MASK_BYTES, MASK_BYTES + HEAD_BYTES + length))
    answer[0] = frame[0]!
    answer[1] = length
    for (let index = 0; index < length; index++) answer[HEAD_BYTES + index]! ^= mask[index % MASK_BYTES]!
    socket.write(answer)
  })
}

const datagrams = createSocket('udp4')
datagrams.on('message', (datagram, { port, address }) => datagrams.send(datagram, port, address))
datagrams.bind(0, '127.0.0.1')
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })
await Promise.all([once(server, 'listening'), once(datagrams, 'listening')])
process.stdout.write(`${(server.address() as AddressInfo).port} ${datagrams.address().port}\n`)
process.stdin.resume()
await once(process.stdin, 'end')
process.exit()
