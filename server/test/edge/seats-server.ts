// A game server that has never heard of the platform, and what its players do.
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { until } from '../support/until.ts'

/**
 * It prints a line for everything that reaches it, and returns what it receives. `how many` returns the number of its open TCP
 * connections. A WebSocket gets the number of open ones.
 */
export const PLAIN_SERVER = `
import { createHash } from 'node:crypto'
import { createSocket } from 'node:dgram'
const { createServer: createHttp } = process.getBuiltinModule('node:http')
import { createServer } from 'node:net'
const { PORT_CHAT, PORT_WEB, PORT_NAMED, PORT_RAW, PORT_KEPT, PORT_OLD, PORT_VOICE, HOST } = process.env
const print = (what) => console.log(JSON.stringify(what))
const web = createHttp((request, response) => {
  const seen = { kind: 'http', url: request.url, headers: request.headers, from: request.socket.remoteAddress }
  print(seen)
  response.end(JSON.stringify(seen))
})
const open = new Map()
const count = (socket) => {
  const sockets = open.get(socket.localPort) ?? new Set()
  open.set(socket.localPort, sockets.add(socket))
  for (const event of ['end', 'error', 'close']) socket.once(event, () => sockets.delete(socket))
  return sockets
}
web.on('upgrade', (request, socket) => {
  const sockets = count(socket)
  print({ kind: 'websocket', url: request.url, headers: request.headers })
  const accept = createHash('sha1').update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11')
  socket.on('error', () => {})
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n' +
    'Sec-WebSocket-Accept: ' + accept.digest('base64') + '\\r\\n\\r\\n')
  // A text frame of one digit.
  socket.write(Buffer.concat([Buffer.from([0x81, 1]), Buffer.from(String(sockets.size))]))
})
web.listen(PORT_WEB, HOST)
if (PORT_NAMED) createHttp((request, response) => web.emit('request', request, response)).listen(PORT_NAMED, HOST)
const onTcp = (socket) => {
  const sockets = count(socket)
  const from = socket.remoteAddress
  socket.once('data', () => print({ kind: 'tcp', from }))
  // The platform connects once to see whether the server is ready.
  socket.once('end', () => socket.bytesRead > 0 || print({ kind: 'silent', from }))
  socket.on('error', () => {})
  socket.on('data', (bytes) => socket.write(String(bytes) === 'how many' ? String(sockets.size) : bytes))
}
for (const port of [PORT_RAW, PORT_CHAT, PORT_KEPT, PORT_OLD]) if (port) createServer(onTcp).listen(port, HOST)
const voice = createSocket('udp4')
voice.on('message', (datagram, { address, port }) => {
  print({ kind: 'udp', from: address, text: datagram.toString('latin1') })
  voice.send(datagram, port, address)
})
voice.bind(PORT_VOICE, HOST)
process.on('SIGTERM', () => process.exit(0))
`

export type Line = { kind: string; from?: string; url?: string; text?: string; headers?: Record<string, string> }

/** A connection that sends `first` and resolves with what comes back; null: it was ended without a byte. */
export async function echoOf(
  url: string,
  first: string,
  options: { keep?: Socket[]; from?: string; characters?: number } = {},
) {
  const { hostname, port } = new URL(url)
  const localAddress = options.from ?? '127.0.0.1'
  const socket = connect({ host: hostname, port: Number(port), localAddress })
  socket.on('error', () => {})
  socket.write(first)
  const { characters = 1 } = options
  let received = ''
  const answer = await new Promise<string | null>((resolve) => {
    socket
      .on('data', (bytes) => {
        received += bytes
        if (received.length >= characters) resolve(received)
      })
      .once('close', () => resolve(received === '' ? null : received))
  })
  if (options.keep === undefined) socket.destroy()
  else options.keep.push(socket)
  return answer
}

/** The handshake of a UDP source with a token. Returns the edge's last message: 4 accepted, 5 refused. */
export async function handshake(socket: UdpSocket, url: string, token: string): Promise<number> {
  const { hostname, port } = new URL(url)
  const received: Buffer[] = []
  const keep = (datagram: Buffer): void => void received.push(datagram)
  socket.on('message', keep)
  const ask = (kind: number, rest: Buffer): void =>
    socket.send(Buffer.concat([Buffer.from('MUST'), Buffer.from([kind]), rest]), Number(port), hostname)
  const answered = (...kinds: number[]) =>
    until(`an answer of the edge, ${kinds}`, async () => {
      if (kinds.includes(2)) ask(1, Buffer.from(token))
      return received.find((datagram) => kinds.includes(datagram[4]!)) ?? null
    })
  const cookie = (await answered(2)).subarray(5)
  ask(3, Buffer.concat([cookie, Buffer.from(token)]))
  const answer = await answered(4, 5)
  socket.off('message', keep)
  return answer[4]!
}

export async function openUdp(from = '127.0.0.1'): Promise<UdpSocket> {
  const socket = createSocket('udp4')
  socket.bind(0, from)
  await once(socket, 'listening')
  return socket
}
