// A request that came over a trunk and its response, as the framework and the handlers know them from Node's HTTP server. The
// edge has proven itself when it opened the trunk. What it says about the client is in the headers in which it would say it
// over HTTP.
import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ASK_SHARD_HEADER, EDGE_PROOF_HEADER, RAY_HEADER, RAY_KEPT_HEADER, SHARD_HEADER } from '../wire/headers.ts'
import {
  type FrameBatch,
  PIECE_BYTES_MAX,
  type readRequest,
  STREAM_CREDIT_BYTES,
  type TrunkResponse,
} from '../wire/trunk-frames.ts'

type ReceivedRequest = NonNullable<ReturnType<typeof readRequest>>

/** Header names that are known in lower case. */
const NAMES_MAX = 1_024
/** Lower case by the names as they came: clients send few different ones. */
const lower_names = new Map<string, string>()

/** Names of which the first of several lines counts, as in Node's parser. */
const FIRST_COUNTS: ReadonlySet<string> = new Set([
  ...['age', 'authorization', 'content-length', 'content-type', 'etag', 'expires', 'from', 'host'],
  ...['if-modified-since', 'if-unmodified-since', 'last-modified', 'location', 'max-forwards'],
  ...['proxy-authorization', 'referer', 'retry-after', 'server', 'user-agent'],
])

/** Returns null for lines that are no header lines. */
function headersOf(lines: string): IncomingMessage['headers'] | null {
  const headers: Record<string, string> = {}
  let at = 0
  while (at < lines.length) {
    const colon = lines.indexOf(': ', at)
    const end = lines.indexOf('\r\n', at)
    if (colon <= at || colon > end) return null
    const name = lowerNameOf(lines.slice(at, colon))
    const value = lines.slice(colon + 2, end)
    const before = headers[name]
    // A name of the prototype, such as `constructor`, has a value that is no text.
    if (typeof before !== 'string') headers[name] = value
    else if (!FIRST_COUNTS.has(name)) headers[name] = `${before}${name === 'cookie' ? '; ' : ', '}${value}`
    at = end + 2
  }
  return headers
}

function lowerNameOf(name: string): string {
  const known = lower_names.get(name)
  if (known !== undefined) return known
  const lower = name.toLowerCase()
  if (lower_names.size < NAMES_MAX) lower_names.set(name, lower)
  return lower
}

/** What a handler reads of a connection. There is one for each stream: it is destroyed when the client is gone. */
type StreamSocket = { remoteAddress: string | undefined; destroyed: boolean; readable: boolean }

/** Returns null for a request that an edge does not send. `proof`: of the edge, which it has shown. */
export function requestOf(
  received: ReceivedRequest,
  { proof, peer }: { proof: string; peer: string | undefined },
): IncomingMessage | null {
  const { method, path, client_ip, ray_id, lines, is_secure, has_length, asks_shard, body } = received
  const headers = headersOf(lines)
  if (headers === null) return null
  headers['x-forwarded-for'] = client_ip
  headers['x-forwarded-proto'] = is_secure ? 'https' : 'http'
  headers[EDGE_PROOF_HEADER] = proof
  headers[RAY_HEADER] = ray_id
  if (asks_shard) headers[ASK_SHARD_HEADER] = '1'
  if (has_length) headers['content-length'] = String(body.length)
  const socket: StreamSocket = { remoteAddress: peer, destroyed: false, readable: false }
  const request = new IncomingMessage(socket as Socket)
  request.httpVersionMajor = 1
  request.httpVersionMinor = 1
  request.httpVersion = '1.1'
  request.method = method
  request.url = path
  request.headers = headers
  request.complete = true
  if (body.length > 0) request.push(body)
  request.push(null)
  return request
}

const STATUS_NO_CONTENT = 204
const STATUS_NOT_MODIFIED = 304
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** About one connection only. */
const OWN_TO_HTTP: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date'])
/** Bytes of a body that wait here before a stream of the handler is paused. */
const WAITING_BYTES_MAX = 64 * 1024
const NOTHING = Buffer.alloc(0)
/** Characters of a text that is sent in one frame: fewer bytes than the first credit of a stream. */
const TEXT_LENGTH_MAX = 8 * 1024

/** Receives a response from the framework, and gives it to the trunk in pieces. */
export class TrunkedResponse extends ServerResponse {
  readonly number: number
  /** When the request came, by performance.now(). */
  readonly since: number
  readonly #request: IncomingMessage
  /** There is something for the trunk to send. */
  readonly #onReady: (response: TrunkedResponse) => void
  #head: TrunkResponse | null = null
  #is_head_sent = false
  #has_ended = false
  /** The whole body, where it is a short text: it is written into the frame at once. */
  #text: string | null = null
  #body: Buffer = NOTHING
  #credit_bytes = STREAM_CREDIT_BYTES

  constructor(
    request: IncomingMessage,
    stream: { number: number; since: number; onReady: (response: TrunkedResponse) => void },
  ) {
    super(request)
    this.number = stream.number
    this.since = stream.since
    this.#request = request
    this.#onReady = stream.onReady
  }

  /** Throws for a header that no response can have. */
  override writeHead(status: number, ...rest: unknown[]): this {
    this.statusCode = status
    const headers = rest.at(-1) as OutgoingHttpHeaders | undefined
    const before = this.getHeaderNames().length === 0 ? {} : this.getHeaders()
    this.#head = headOf(status, { ...before, ...headers }, this.#request.method === 'HEAD')
    return this
  }

  /** Returns false where the handler is to wait for `drain`. */
  override write(chunk: string | Buffer): boolean {
    if (this.#head === null) this.writeHead(this.statusCode)
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    this.#body = this.#body.length === 0 ? bytes : Buffer.concat([this.#body, bytes])
    this.#onReady(this)
    return this.#body.length < WAITING_BYTES_MAX
  }

  override end(chunk?: unknown): this {
    if (this.#has_ended || this.destroyed) return this
    if (this.#head === null) this.writeHead(this.statusCode)
    const is_first = !this.#is_head_sent && this.#body.length === 0
    if (is_first && typeof chunk === 'string' && chunk.length <= TEXT_LENGTH_MAX) this.#text = chunk
    else if (chunk != null) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Buffer)
      this.#body = this.#body.length === 0 ? bytes : Buffer.concat([this.#body, bytes])
    }
    this.#has_ended = true
    this.finished = true
    this.#onReady(this)
    this.emit('finish')
    this.emit('close')
    return this
  }

  /** The client is gone. */
  leave(): void {
    if (this.#has_ended || this.destroyed) return
    Reflect.set(this.#request.socket, 'destroyed', true)
    Reflect.set(this, 'destroyed', true)
    this.emit('close')
  }

  /** Ends the response without its rest, as a handler that fails in the middle of a stream does. */
  override destroy(): this {
    if (this.#has_ended || this.destroyed) return this
    this.leave()
    this.#onReady(this)
    return this
  }

  /** The edge takes more. Returns whether there is something to send now. */
  addCredit(bytes: number): boolean {
    this.#credit_bytes += bytes
    return this.#body.length > 0
  }

  /**
   * Writes a frame. Returns `more` when there is more to send now, `later` when it waits for credit or for the handler, and
   * `done` when the whole response is written.
   */
  writeTo(batch: FrameBatch): 'more' | 'later' | 'done' {
    const head = this.#is_head_sent ? null : this.#head
    if (head !== null && this.#text !== null) {
      batch.response(this.number, head, head.body_length === 'none' ? '' : this.#text, true)
      return 'done'
    }
    if (head?.body_length === 'none') this.#body = NOTHING
    const length = Math.min(this.#body.length, this.#credit_bytes, PIECE_BYTES_MAX)
    const is_last = this.#has_ended && length === this.#body.length
    if (head === null && length === 0 && !is_last) return 'later'
    const piece = this.#body.subarray(0, length)
    if (head === null) batch.body(this.number, piece, is_last)
    else batch.response(this.number, head, piece, is_last)
    this.#is_head_sent = true
    this.#credit_bytes -= length
    const was_full = this.#body.length >= WAITING_BYTES_MAX
    this.#body = this.#body.subarray(length)
    if (was_full && this.#body.length < WAITING_BYTES_MAX && !this.#has_ended) this.emit('drain')
    if (is_last) return 'done'
    return this.#body.length > 0 && this.#credit_bytes > 0 ? 'more' : 'later'
  }
}

function headOf(status: number, headers: OutgoingHttpHeaders, is_to_head: boolean): TrunkResponse {
  const head: TrunkResponse = { status, lines: '', body_length: null, ray_kept: null, shard: null }
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || OWN_TO_HTTP.has(name)) continue
    if (name === RAY_KEPT_HEADER) head.ray_kept = String(value)
    else if (name === SHARD_HEADER) head.shard = Number(value)
    else head.lines += linesOf(name, value)
    if (name === 'content-length') head.body_length = Number(value)
  }
  if (is_to_head || status === STATUS_NO_CONTENT || status === STATUS_NOT_MODIFIED) head.body_length = 'none'
  return head
}

function linesOf(name: string, value: number | string | readonly string[]): string {
  if (typeof value !== 'string' && typeof value !== 'number') return value.map((one) => linesOf(name, one)).join('')
  const text = String(value)
  if (!NAME.test(name) || !VALUE.test(text)) throw new Error(`A response has an invalid header ${name}.`)
  return `${name}: ${text}\r\n`
}
