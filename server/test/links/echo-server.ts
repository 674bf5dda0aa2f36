/** A game server without dependencies: it returns what it receives over WebSocket, TCP and UDP, with its own process id. */
export const ECHO_SERVER = `
import { createHash } from 'node:crypto'
import dgram from 'node:dgram'
const http = process.getBuiltinModule('node:http')
import net from 'node:net'
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME, PORT_RAW, PORT_VOICE } = process.env
const own = (text) => process.pid + ' ' + text
const accept = (key) => createHash('sha1').update(key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
const server = http.createServer((request, response) => response.end(own(request.url)))
server.on('upgrade', (request, socket) => {
  socket.on('error', () => {})
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n' +
    'Sec-WebSocket-Accept: ' + accept(request.headers['sec-websocket-key']) + '\\r\\n\\r\\n')
  socket.on('data', (frame) => {
    const length = frame[1] & 127
    const text = Buffer.from(frame.subarray(6, 6 + length).map((byte, at) => byte ^ frame[2 + (at % 4)])).toString()
    const reply = Buffer.from(own(text))
    if ((frame[0] & 15) === 1) socket.write(Buffer.concat([Buffer.from([0x81, reply.length]), reply]))
    else socket.end()
  })
})
net.createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(Number(PORT_RAW), '127.0.0.1')
const voice = dgram.createSocket('udp4')
voice.on('message', (bytes, source) => voice.send(bytes, source.port, source.address))
voice.bind(Number(PORT_VOICE), '127.0.0.1')
server.listen(Number(PORT_GAME), '127.0.0.1', () => {
  const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
  http.request(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }).end()
})
process.on('SIGTERM', () => process.exit(0))
`
