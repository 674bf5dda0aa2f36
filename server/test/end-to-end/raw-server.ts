// A game that speaks raw TCP and UDP, as a developer would upload it, and what its players do.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

/**
 * TCP: the first line is the player's token; the platform is asked for it, and then every line comes back in upper case.
 * UDP: every datagram comes back with the number of bytes it had in front. Bytes that begin with PROXY v2 are returned as hex.
 */
export const RAW_SERVER = `
import dgram from 'node:dgram'
const http = process.getBuiltinModule('node:http')
import net from 'node:net'
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME, PORT_VOICE } = process.env
const call = (path, body) =>
  new Promise((resolve, reject) => {
    const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN, 'content-type': 'application/json' }
    const request = http.request(PLATFORM_API_URL + '/matchmaker' + path, { method: 'POST', headers }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode))
    })
    request.on('error', reject)
    request.end(body && JSON.stringify(body))
  })
const server = net.createServer({ allowHalfOpen: true }, (socket) => {
  let text = ''
  let is_player = false
  let work = Promise.resolve()
  socket.on('error', () => {})
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk
    for (let end = text.indexOf('\\n'); end >= 0; end = text.indexOf('\\n')) {
      const line = text.slice(0, end)
      text = text.slice(end + 1)
      work = work.then(async () => {
        if (is_player) return socket.write(line.toUpperCase() + '\\n')
        is_player = (await call('/players/connected', { player_token: line })) === 200
        if (is_player) socket.write('welcome\\n')
        else socket.destroy()
      })
    }
  })
  socket.on('end', () => (work = work.then(() => socket.end('bye\\n'))))
})
const voice = dgram.createSocket('udp4')
voice.on('message', (datagram, { port, address }) =>
  voice.send(Buffer.concat([Buffer.from(datagram.length + ':'), datagram]), port, address))
server.listen(Number(PORT_GAME), '127.0.0.1', () =>
  voice.bind(Number(PORT_VOICE), '127.0.0.1', () => call('/lobbies/ready')))
process.on('SIGTERM', () => process.exit(0))
`

export type Lines = { socket: Socket; write: (line: string) => void; line: () => Promise<string | null> }

/** A connection, line by line; null is its end, or that of what comes. */
export function openLines(t: TestContext, socket: Socket): Lines {
  const lines: (string | null)[] = []
  const waiting: ((line: string | null) => void)[] = []
  let text = ''
  const tell = (line: string | null): void => {
    const next = waiting.shift()
    if (next === undefined) lines.push(line)
    else next(line)
  }
  socket.setEncoding('latin1')
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer | string) => {
    text += String(chunk)
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      tell(text.slice(0, end))
      text = text.slice(end + 1)
    }
  })
  let is_over = false
  for (const event of ['end', 'close']) {
    socket.once(event, () => {
      if (!is_over) tell(null)
      is_over = true
    })
  }
  t.after(() => void socket.destroy())
  return {
    socket,
    write: (line) => void socket.write(`${line}\n`),
    line: () => {
      const first = lines.shift()
      return first === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(first)
    },
  }
}

export function dial(t: TestContext, url: string): Lines {
  const { hostname, port } = new URL(url)
  return openLines(t, connect({ host: hostname, port: Number(port), allowHalfOpen: true }))
}

export type Datagrams = {
  port: number
  send: (datagram: Buffer | string) => void
  next: () => Promise<Buffer>
  received: Buffer[]
}

/** A source of datagrams to one address. */
export async function openDatagrams(t: TestContext, url: string, from = '127.0.0.1'): Promise<Datagrams> {
  const { hostname, port } = new URL(url)
  const socket = createSocket('udp4')
  const received: Buffer[] = []
  const waiting: ((datagram: Buffer) => void)[] = []
  socket.on('message', (datagram) => {
    const next = waiting.shift()
    if (next === undefined) received.push(datagram)
    else next(datagram)
  })
  socket.bind(0, from)
  await once(socket, 'listening')
  t.after(() => socket.close())
  return {
    port: socket.address().port,
    received,
    send: (datagram) => socket.send(datagram, Number(port), hostname),
    next: () => {
      const first = received.shift()
      return first === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(first)
    },
  }
}
