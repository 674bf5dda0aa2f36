// One stream of requests at a time through the edge, and what must hold for it. The law is safety, not equality: the edge
// may refuse what others take, but whatever it forwards, every parser behind it must read as the same requests.
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { errorOf, type TestEdge } from '../../edge/platform.ts'
import { bodyOf, requestLength } from '../../edge/strict-backend.ts'
import type { Peer } from './peers.ts'
import { type Reading, type ReadRequest, type ReadResponse, readRequest, readResponse } from './read.ts'
import { readSent, type SentRequest } from './read-sent.ts'
import { type Recorder, startRecorder } from './recorder.ts'
import type { Stream } from './requests.ts'

/** So long a silence is a hang, on a busy machine too. */
const HANG_MS = 30_000
const BARRIER = '/barrier'

export type Outcome = {
  /** Requests that were forwarded whole. */
  forwarded: number
  /** Responses of the edge that refuse. */
  refused: number
}

export class RequestLane {
  readonly #edge: TestEdge
  readonly #recorder: Recorder
  readonly #peers: readonly Peer[]
  readonly #host: string
  /** What is under way, for the report of a crash. */
  stream: Stream | null = null

  constructor(edge: TestEdge, recorder: Recorder, peers: readonly Peer[], host: string) {
    this.#edge = edge
    this.#recorder = recorder
    this.#peers = peers
    this.#host = host
  }

  /** Throws an Error that says which law the stream breaks. */
  async examine(stream: Stream): Promise<Outcome> {
    this.stream = stream
    const bytes = stream.bytes.replaceAll('HOST', this.#host)
    const sent = readSent(bytes)
    this.#recorder.clear()
    const came = await this.#send(bytes, stream.pieces, sent)
    await this.#requireNothingLeft()
    const forwarded = this.#recorder.requests.slice(0, -1)
    const raw = this.#recorder.received().replace(BARRIER_REQUEST, '')
    this.#requireHonest(sent.requests, forwarded)
    const refused = requireResponses(came, sent.heads, forwarded.length)
    requireCleanHeads(raw)
    for (const peer of this.#peers) requirePart(peer.name, forwarded, raw === '' ? [] : await peer.read(raw))
    await this.#requireSomeoneElse(bytes, sent.requests, forwarded)
    this.stream = null
    return { forwarded: forwarded.length, refused }
  }

  /** What the edge says to the stream, until all that was sent has its response or the connection has ended. */
  async #send(bytes: string, pieces: readonly number[], sent: Sent): Promise<string> {
    const client = connect({ port: this.#edge.port, host: '127.0.0.1', allowHalfOpen: true })
    const came = collect(client, (all) => responsesIn(all, sent.heads, false).responses.length >= sent.requests.length)
    let at = 0
    for (const length of pieces) {
      client.write(Buffer.from(bytes.slice(at, at + length), 'latin1'))
      at += length
      await new Promise((resolve) => setImmediate(resolve))
    }
    client.write(Buffer.from(bytes.slice(at), 'latin1'))
    return await came
  }

  /** A request of another client comes next on the connections to the backend: it has to find them as if new. */
  async #requireNothingLeft(): Promise<void> {
    const client = connect({ port: this.#edge.port, host: '127.0.0.1', allowHalfOpen: true })
    client.write(`GET ${BARRIER} HTTP/1.1\r\nHost: ${this.#host}\r\nConnection: close\r\n\r\n`)
    const came = await collect(client, () => false)
    const { requests, faults } = this.#recorder
    if (faults.length > 0) throw new Error(`the backend read what is no request: ${faults.join('; ')}`)
    const next = requests.at(-1)
    if (next?.target !== BARRIER || next.method !== 'GET' || next.body !== '')
      throw new Error(`the next client's request arrived as ${JSON.stringify(next)}`)
    if (!came.startsWith('HTTP/1.1 200 ') || !came.endsWith(`\r\n\r\n${requests.length - 1}`))
      throw new Error(`the next client got ${JSON.stringify(came)}`)
  }

  #requireHonest(sent: readonly ReadRequest[], forwarded: readonly ReadRequest[]): void {
    const meant = sent.map((request) => this.#asForwarded(request))
    requirePart('the backend', meant, forwarded)
  }

  #asForwarded({ method, target, body }: ReadRequest): ReadRequest {
    return { method, target: originForm(target, this.#host), body }
  }

  /** Each request that the edge takes, at least one of the others takes: in its place, or as the first of a connection. */
  async #requireSomeoneElse(
    bytes: string,
    sent: readonly SentRequest[],
    forwarded: readonly ReadRequest[],
  ): Promise<void> {
    if (forwarded.length === 0 || this.#peers.length < PEERS) return
    for (const peer of this.#peers) if ((await peer.read(bytes)).length >= forwarded.length) return
    let next = 0
    for (const request of forwarded) {
      while (!isEqual(this.#asForwarded(sent[next]!), request)) next++
      const rest = bytes.slice(sent[next++]!.at)
      const readings = await Promise.all(this.#peers.map((peer) => peer.read(rest)))
      if (readings.every(({ length }) => length === 0))
        throw new Error(`the edge takes ${JSON.stringify(request)}, and nobody else does`)
    }
  }
}

type Sent = ReturnType<typeof readSent>

const PEERS = 3
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const BARRIER_REQUEST = new RegExp(`GET ${BARRIER} HTTP/1\\.1\\r\\n(?:.+\\r\\n)*\\r\\n`)

export async function openRequestLane(t: TestContext, edge: TestEdge, peers: readonly Peer[]): Promise<RequestLane> {
  const recorder = await startRecorder(t, { port: 0, host: '127.0.0.1' }, readStrictly)
  const lobby_id = await edge.lobby({ default: recorder.port })
  return new RequestLane(edge, recorder, peers, `${lobby_id}-default.lobby.local.localhost`)
}

/** By the parser of the other tests of the edge, and by our own: both must read the same. */
function readStrictly(bytes: string): Reading<ReadRequest> {
  const reading = readRequest(bytes)
  if (reading === 'incomplete' || 'fault' in reading) return reading
  let length: number | null
  try {
    length = requestLength(bytes)
  } catch (error) {
    return { fault: String(error) }
  }
  if (length !== reading.length || bodyOf(bytes.slice(0, length)) !== reading.message.body)
    return { fault: 'two strict parsers read it differently' }
  return reading
}

/** Everything until the connection ends. Once it `isEnough`, our side finishes. */
function collect(socket: Socket, isEnough: (bytes: string) => boolean): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let bytes = ''
  let has_ended = false
  const finish = () => {
    if (!has_ended && isEnough(bytes)) {
      has_ended = true
      socket.end()
    }
  }
  socket.setEncoding('latin1')
  socket.on('data', (chunk) => {
    bytes += chunk
    finish()
  })
  socket.on('end', () => socket.end())
  // A connection that is reset has ended too; what came before counts.
  socket.on('error', () => {})
  socket.on('close', () => resolve(bytes))
  socket.setTimeout(HANG_MS, () => {
    reject(new Error(`the edge neither responds nor closes; there is ${JSON.stringify(bytes)}`))
    socket.destroy()
  })
  // A stream without a whole request is over when it has been written.
  socket.once('connect', finish)
  return promise
}

/** Whole responses at the start of the bytes, and what comes after them. */
function responsesIn(bytes: string, heads: readonly boolean[], is_ended: boolean) {
  const responses: ReadResponse[] = []
  for (let at = 0; at < bytes.length; ) {
    const reading = readResponse(bytes.slice(at), heads[responses.length] ? 'HEAD' : 'GET', is_ended)
    if (reading === 'incomplete' || 'fault' in reading) return { responses, rest: bytes.slice(at) }
    responses.push(reading.message)
    at += reading.length
  }
  return { responses, rest: '' }
}

/** Each is the backend's, in order, or a refusal with our error body. Returns how many refuse. */
function requireResponses(bytes: string, heads: readonly boolean[], forwarded: number): number {
  const { responses, rest } = responsesIn(bytes, heads, true)
  // A client that is asked for its body may leave instead.
  if (rest !== '' && rest !== CONTINUE)
    throw new Error(`the client is sent what is no response: ${JSON.stringify({ rest, bytes })}`)
  let taken = 0
  for (const [index, { status, body, headers }] of responses.entries()) {
    if (status === 200) {
      if (!heads[index] && body !== String(taken))
        throw new Error(`response ${taken} of the backend is ${JSON.stringify(body)}`)
      taken++
    } else if (status < 400 || status >= 500) {
      throw new Error(`the edge responds with ${status}: ${JSON.stringify(bytes)}`)
    } else if (!heads[index]) {
      const lines = headers.map(([name, value]) => `${name}: ${value}\n`).join('')
      errorOf(`HTTP/1.1 ${status} X\n${lines}\r\n\r\n${body}`)
    }
  }
  if (taken !== forwarded) throw new Error(`${forwarded} requests were forwarded, and ${taken} have their response`)
  return responses.length - taken
}

/** `seen` are some of `known`, in their order. */
function requirePart(who: string, known: readonly ReadRequest[], seen: readonly ReadRequest[]): void {
  let next = 0
  for (const request of seen) {
    while (next < known.length && !isEqual(known[next]!, request)) next++
    if (next === known.length)
      throw new Error(`${who} reads ${JSON.stringify(request)}, which is none of ${JSON.stringify(known)}`)
    next++
  }
}

function isEqual(a: ReadRequest, b: ReadRequest): boolean {
  return a.method === b.method && a.target === b.target && a.body === b.body
}

/** What only the edge says of a client it says once, and what belongs to one connection ends with it. */
function requireCleanHeads(raw: string): void {
  for (let at = 0; at < raw.length; ) {
    const length = requestLength(raw.slice(at))
    if (length === null) return
    const head = raw.slice(at, raw.indexOf('\r\n\r\n', at) + 2)
    if (
      head.match(/^x-forwarded-for: 127\.0\.0\.1\r$/gim)?.length !== 1 ||
      head.match(/^x[-_]forwarded[-_]for:/gim)?.length !== 1
    )
      throw new Error(`the client's address is not said once: ${JSON.stringify(head)}`)
    const forged =
      /^(?:expect|te|trailer|keep-alive|proxy-connection|http2-settings|x-muster-edge|x-ray-id|content_length|transfer_encoding):/im.exec(
        head,
      )
    if (forged !== null) throw new Error(`${forged[0]} is forwarded`)
    at += length
  }
}

function originForm(target: string, host: string): string {
  const rest = new RegExp(`^https?://${RegExp.escape(host)}(.*)$`, 'i').exec(target)?.[1]
  if (rest === undefined) return target
  return rest.startsWith('/') ? rest : `/${rest}`
}
