// Measures one route to the backend: requests, bytes, datagrams and round trips. Each measurement is short, so that routes
// can take turns.
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { median } from '../load.ts'

const HTTP_CONNECTIONS = 32
export const HTTP_ROUND_S = 2
const UDP_ROUND_MS = 1_000
const UDP_WINDOW = 32
const UDP_BYTES = 64
/** A lost datagram is replaced, so that the window stays full. */
const UDP_LOST_MS = 200
const TCP_BYTES = 128 * 1024 * 1024
const TCP_PIECE = Buffer.alloc(64 * 1024, 'x')
const TRIPS = 1_000
const HANDSHAKE_KEY = 'dGhlIHNhbXBsZSBub25jZQ=='

/** Requests per second, by wrk: a load generator in JavaScript would be slower than a proxy in C. */
export async function requestsPerSecond(url: string, host?: string): Promise<number> {
  const header = host === undefined ? [] : ['-H', `Host: ${host}`]
  const child = spawn('wrk', ['-t1', `-c${HTTP_CONNECTIONS}`, `-d${HTTP_ROUND_S}s`, ...header, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  child.once('error', () => console.error('This bench needs wrk: apt-get install wrk'))
  const output = await text(child.stdout)
  const per_second = Number(/^Requests\/sec:\s+([\d.]+)/m.exec(output)?.[1])
  if (!(per_second > 0) || /Non-2xx|Socket errors/.test(output)) throw new Error(`wrk failed:\n${output}`)
  return per_second
}

/** Round trips per second of one source that always has UDP_WINDOW datagrams under way. */
export async function datagramsPerSecond(port: number, host = '127.0.0.1'): Promise<number> {
  const socket = createSocket('udp4')
  const datagram = Buffer.alloc(UDP_BYTES, 'x')
  let received = 0
  let last = performance.now()
  const send = (): void => socket.send(datagram)
  socket.on('message', () => {
    received++
    send()
  })
  socket.connect(port, host)
  await once(socket, 'connect')
  const started = performance.now()
  let before = 0
  const refill = (): void => {
    if (received === before) for (let count = 0; count < UDP_WINDOW; count++) send()
    before = received
    last = performance.now()
  }
  refill()
  const timer = setInterval(refill, UDP_LOST_MS)
  await new Promise((resolve) => setTimeout(resolve, UDP_ROUND_MS))
  clearInterval(timer)
  socket.removeAllListeners('message')
  const elapsed_ms = Math.max(last, performance.now()) - started
  socket.close()
  if (received === 0) throw new Error(`nothing came back from udp ${port}`)
  return (received / elapsed_ms) * 1_000
}

/** MB per second in both directions. */
export async function megabytesPerSecond(port: number, host = '127.0.0.1'): Promise<number> {
  const socket = await dial(port, undefined, host)
  const started = performance.now()
  let received = 0
  const done = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length
      if (received === TCP_BYTES) resolve()
    })
  })
  for (let sent = 0; sent < TCP_BYTES; sent += TCP_PIECE.length) {
    if (!socket.write(TCP_PIECE)) await once(socket, 'drain')
  }
  await done
  const elapsed_ms = performance.now() - started
  socket.destroy()
  return TCP_BYTES / 1e6 / (elapsed_ms / 1_000)
}

/** The median of consecutive round trips over one connection, in ms. */
export async function tripMs(socket: Socket, message: Buffer): Promise<number> {
  const trips: number[] = []
  for (let trip = 0; trip < TRIPS; trip++) {
    const started = performance.now()
    const answered = once(socket, 'data')
    socket.write(message)
    await answered
    trips.push(performance.now() - started)
  }
  return median(trips)
}

export async function dial(port: number, from?: string, host = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host, noDelay: true, ...(from !== undefined && { localAddress: from }) })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Returns a socket after its WebSocket handshake. */
export async function openWebSocket(port: number, host: string, from?: string): Promise<Socket> {
  const socket = await dial(port, from)
  const answered = once(socket, 'data')
  socket.write(
    `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${HANDSHAKE_KEY}\r\n\r\n`,
  )
  const [head] = (await answered) as [Buffer]
  if (!head.toString('latin1').startsWith('HTTP/1.1 101')) throw new Error(`no WebSocket: ${head.toString('latin1')}`)
  return socket
}

/** A masked text frame. */
export function frameOf(message: string): Buffer {
  const mask = Buffer.from([1, 2, 3, 4])
  const bytes = Buffer.from(message)
  for (const [index, byte] of bytes.entries()) bytes[index] = byte ^ mask[index % mask.length]!
  return Buffer.concat([Buffer.from([0x81, 0x80 | bytes.length]), mask, bytes])
}
