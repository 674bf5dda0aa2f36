// Sends one hostile response at a time through the edge, and checks its laws. The client gets the response of the backend,
// an error, or a connection that visibly breaks off. The next request gets its own response.
import { type ClientRequest, type IncomingMessage, request as nodeRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { TestContext } from 'node:test'
import { HEADER_BYTES_MAX, INTERIM_RESPONSES_MAX } from '../../../src/edge/limits.ts'
import type { TestEdge } from '../../edge/platform.ts'
import { startBytes } from '../../edge/strict-backend.ts'
import { headerOf, type ReadResponse, readResponse } from './read.ts'
import type { Hostile } from './responses.ts'

const HANG_MS = 30_000
const FINE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine'
const FINE_PATH = '/fine'
/** Of those that only a lobby's own host may send: none passes on the path route. */
const POWERS = ['set-cookie', 'refresh', 'alt-svc', 'x-ray-id', 'x-plain']

/** What came, and how it ended: `open` when enough came before. */
type Came = { bytes: string; end: 'open' | 'finished' | 'reset' }

export class ResponseLane {
  readonly #edge: TestEdge
  readonly #lobby_id: string
  /** What is under way, for the backend and for the report of a crash. */
  hostile: Hostile | null = null
  /** Once the backend has done with its connection what it wanted: before that, the next request may meet its end. */
  #ended: Promise<void> = Promise.resolve()

  constructor(edge: TestEdge, lobby_id: string) {
    this.#edge = edge
    this.#lobby_id = lobby_id
  }

  /** Throws an Error that says which law the response breaks. Returns whether the client got it. */
  async examine(hostile: Hostile): Promise<boolean> {
    this.hostile = hostile
    const client = this.#connect()
    const { method, version, route } = hostile
    client.socket.write(this.#request(method, '/hostile', version, route))
    const came = await client.read((bytes) => isWhole(readResponse(bytes, method, false)))
    const reading = readResponse(came.bytes, method, came.end === 'finished')
    const got = isWhole(reading) ? reading.message : null
    const sent = meantBy(hostile)
    requireFaithful(hostile, sent, got, came)
    if (got !== null && got.status === sent?.status && route === 'path') requirePowerless(got)
    await requireSameInNode(method, came, got)
    await this.#ended
    if (got !== null && headerOf(got.headers, 'connection') === 'close') await client.read(() => false)
    else if (came.end === 'open') await this.#requireFine(client, reading)
    client.socket.destroy()
    const next = this.#connect()
    await this.#requireFine(next, null)
    this.hostile = null
    return got !== null && got.status === sent?.status
  }

  serve(socket: Socket): void {
    let unread = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      unread += chunk
      for (let end = unread.indexOf('\r\n\r\n'); end >= 0; end = unread.indexOf('\r\n\r\n')) {
        const is_fine = unread.split(' ', 2)[1] === FINE_PATH
        unread = unread.slice(end + 4)
        if (is_fine) socket.write(FINE)
        else if (this.hostile !== null) {
          this.#ended = respond(socket, this.hostile)
          // Awaited by `examine`, which may be waiting for the client at this moment.
          this.#ended.catch(() => {})
        }
      }
    })
  }

  #request(method: string, path: string, version: string, route: Hostile['route']): string {
    const host = route === 'host' ? `${this.#lobby_id}-default.lobby.local.localhost` : 'localhost'
    const target = route === 'host' ? path : `/lobbies/${this.#lobby_id}/default${path}`
    return `${method} ${target} HTTP/${version}\r\nHost: ${host}\r\n${version === '1.0' ? 'Connection: keep-alive\r\n' : ''}\r\n`
  }

  async #requireFine(client: Client, before: ReturnType<typeof readResponse> | null): Promise<void> {
    const length = before !== null && isWhole(before) ? before.length : 0
    client.socket.write(this.#request('GET', FINE_PATH, '1.1', 'host').replace(/\r\n$/, 'Connection: close\r\n\r\n'))
    const { bytes } = await client.read(() => false)
    const reading = readResponse(bytes.slice(length), 'GET', false)
    if (!isWhole(reading) || reading.message.body !== 'fine' || length + reading.length !== bytes.length)
      throw new Error(`the next request got ${JSON.stringify(bytes.slice(length))}`)
  }

  #connect(): Client {
    return new Client(connect({ port: this.#edge.port, host: '127.0.0.1', allowHalfOpen: true }))
  }
}

class Client {
  readonly socket: Socket
  #bytes = ''
  #end: Came['end'] = 'open'
  #check = () => {}

  constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      this.#bytes += chunk
      this.#check()
    })
    socket.on('error', () => {
      this.#end = 'reset'
    })
    socket.on('end', () => socket.end())
    socket.on('close', () => {
      if (this.#end === 'open') this.#end = 'finished'
      this.#check()
    })
  }

  /** Once it `isEnough` or the connection has ended. */
  read(isEnough: (bytes: string) => boolean): Promise<Came> {
    const { promise, resolve, reject } = Promise.withResolvers<Came>()
    this.#check = () => {
      if (this.socket.closed || isEnough(this.#bytes)) resolve({ bytes: this.#bytes, end: this.#end })
    }
    this.socket.setTimeout(HANG_MS, () =>
      reject(new Error(`the edge neither responds nor closes; there is ${JSON.stringify(this.#bytes)}`)),
    )
    this.#check()
    return promise
  }
}

export async function openResponseLane(t: TestContext, edge: TestEdge): Promise<ResponseLane> {
  let lane: ResponseLane | null = null
  const { port } = await startBytes(t, (socket) => lane?.serve(socket))
  lane = new ResponseLane(edge, await edge.lobby({ default: port }))
  return lane
}

async function respond(socket: Socket, hostile: Hostile): Promise<void> {
  const { bytes, pieces, method, end } = hostile
  let at = 0
  for (const length of pieces) {
    if (!socket.writable) return
    socket.write(bytes.slice(at, at + length), 'latin1')
    at += length
    await new Promise((resolve) => setImmediate(resolve))
  }
  await new Promise((resolve) => socket.write(bytes.slice(at), 'latin1', resolve))
  const reading = readResponse(bytes, method, false)
  const is_exact = isWhole(reading) && reading.length === bytes.length
  if (socket.destroyed || (end === 'keep' && is_exact)) return
  if (end === 'reset') socket.resetAndDestroy()
  // An edge that waits for the rest of a response must notice that it does not come.
  else if (end === 'finish' || !isWhole(reading)) socket.end()
  // After bytes beyond a response the edge itself must close the connection.
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const late = setTimeout(() => reject(new Error('the edge keeps a connection that was misused')), HANG_MS)
  if (socket.closed) resolve()
  socket.once('close', () => resolve())
  await promise.finally(() => clearTimeout(late))
}

/** The response as the backend sent it; null: it is none, or not all of one. */
function meantBy({ bytes, method, end }: Hostile): ReadResponse | null {
  const reading = readResponse(bytes, method, end !== 'reset')
  if (!isWhole(reading)) return null
  const heads = bytes.split('\r\n\r\n')
  const interim = heads.findIndex((head) => !/^HTTP\/1\.[01] 1/.test(head))
  const is_long = heads.slice(0, interim + 1).some((head) => head.length > HEADER_BYTES_MAX)
  return is_long || interim > INTERIM_RESPONSES_MAX ? null : reading.message
}

function requireFaithful(hostile: Hostile, sent: ReadResponse | null, got: ReadResponse | null, came: Came): void {
  const is_refusal = got?.status === 502 && got.body.includes('"LOBBY_NOT_REACHABLE"')
  const is_error = is_refusal || (got?.status === 502 && hostile.method === 'HEAD')
  if (is_error && sent?.status !== 502) {
    if (sent !== null && !isAmbiguous(hostile)) throw new Error(`a response is refused: ${JSON.stringify(sent)}`)
  } else if (got !== null) {
    if (sent === null) throw new Error(`what is no response looks like one: ${JSON.stringify(came)}`)
    if (got.status !== sent.status || got.body !== sent.body)
      throw new Error(`the client gets another response: ${JSON.stringify({ got, sent })}`)
  } else if (sent !== null && !isAmbiguous(hostile)) {
    throw new Error(`a whole response breaks off: ${JSON.stringify({ came, sent })}`)
  }
}

/** A reset may take along what was sent before it. Tabs beside a length and long extensions of a chunk are refused. */
function isAmbiguous({ end, bytes }: Hostile): boolean {
  return end === 'reset' || /^(?:content-length|transfer-encoding):.*\t/im.test(bytes) || /;.{1000}/.test(bytes)
}

function requirePowerless({ headers }: ReadResponse): void {
  for (const name of POWERS)
    if (headerOf(headers, name) !== undefined) throw new Error(`${name} passes on the path route`)
}

/** Node's client reads the same bytes, and takes the same of them for whole. */
async function requireSameInNode(method: string, { bytes, end }: Came, got: ReadResponse | null): Promise<void> {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  // It has the members of a Socket that Node's client uses.
  const req: ClientRequest = nodeRequest({ method, createConnection: () => socket as Socket })
  req.end()
  socket.push(Buffer.from(bytes, 'latin1'))
  if (end === 'reset') setImmediate(() => socket.destroy(new Error('reset')))
  else socket.push(null)
  const read = await new Promise<{ status: number; body: string } | null>((resolve) => {
    req.on('error', () => resolve(null))
    req.on('response', (res: IncomingMessage) => {
      let body = ''
      res.setEncoding('latin1')
      res.on('data', (chunk) => {
        body += chunk
      })
      res.on('error', () => resolve(null))
      res.on('close', () => resolve(res.complete ? { status: res.statusCode ?? 0, body } : null))
    })
  })
  socket.destroy()
  if (read?.status !== got?.status || read?.body !== got?.body)
    throw new Error(`Node's client reads ${JSON.stringify(read)} where it is ${JSON.stringify(got)}`)
}

function isWhole<T>(reading: { message: T; length: number } | string | { fault: string }): reading is {
  message: T
  length: number
} {
  return typeof reading !== 'string' && 'message' in reading
}
