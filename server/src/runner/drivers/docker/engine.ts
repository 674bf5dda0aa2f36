// The API of a container engine: Docker 20.10 and later, or an engine with the same API, on a Unix socket of this machine
// or on a TCP port of another one. Requests have a time limit and a bounded response. Streams (logs, attached input) are
// open for as long as their reader wants.
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { readBounded } from '../../../flow/read-bounded.ts'

/** The oldest version of the API with all that is used here. Docker 20.10 has it. */
const API_VERSION = 'v1.41'
const REQUESTS_MAX = 32
/** How long the engine may take for one request. Removing a container under load takes seconds. */
const REQUEST_MS_MAX = 60_000
/** Loading an image of several gigabytes. */
const LOAD_MS_MAX = 15 * 60_000
/** Bytes of one response. A list of 1,000 containers takes about 3 MB. */
const RESPONSE_BYTES_MAX = 32 * 1024 ** 2

/** `status`: the HTTP status of the engine's response. The message is the engine's. */
export class EngineError extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.name = 'EngineError'
    this.status = status
  }
}

type Query = Readonly<Record<string, string>>
type Method = 'GET' | 'POST' | 'DELETE' | 'PUT'

/** The client certificate and the authority of the engine's certificate, PEM. */
export type EngineTls = { ca: string; cert: string; key: string }
/** `tls`: null: the connection is not encrypted, and every program that reaches the port is root on the machine. */
export type EngineAddress = { socket: string } | { host: string; port: number; tls: EngineTls | null }

type CallOptions = {
  query?: Query
  body?: unknown
  headers?: Readonly<Record<string, string>>
  ms_max?: number
  /** Ends the request. */
  signal?: AbortSignal
}

export class EngineClient {
  readonly #target: RequestOptions
  readonly #is_tls: boolean
  readonly #agent: Agent | TlsAgent

  /** A text: the path of a Unix socket. */
  constructor(address: string | EngineAddress) {
    const to = typeof address === 'string' ? { socket: address } : address
    const pool = { keepAlive: true, maxSockets: REQUESTS_MAX }
    this.#is_tls = 'tls' in to && to.tls !== null
    this.#target = 'socket' in to ? { socketPath: to.socket } : { host: to.host, port: to.port, ...to.tls }
    this.#agent = this.#is_tls ? new TlsAgent(pool) : new Agent(pool)
  }

  /** The parsed response; null when it has no body. Throws an EngineError for every status from 400 on. */
  async call<T = null>(method: Method, path: string, options: CallOptions = {}): Promise<T> {
    const body = await this.text(method, path, options)
    return (body === '' ? null : JSON.parse(body)) as T
  }

  /** The same, without a parser. */
  async text(method: Method, path: string, options: CallOptions = {}): Promise<string> {
    const text = options.body === undefined ? null : JSON.stringify(options.body)
    const of_body =
      text === null ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }
    const headers = { ...of_body, ...options.headers }
    const late = AbortSignal.timeout(options.ms_max ?? REQUEST_MS_MAX)
    const signal = options.signal === undefined ? late : AbortSignal.any([late, options.signal])
    const response = await this.#send(
      { method, path: pathOf(path, options.query), headers, signal, agent: this.#agent },
      (sent) => sent.end(text ?? undefined),
    )
    return textOf(response)
  }

  /** The same, and null where the engine has no such thing. */
  async find<T>(path: string, query: Query = {}): Promise<T | null> {
    return this.call<T>('GET', path, { query }).catch(nullIfMissing)
  }

  /** What the engine knows of a path in a container: the header that describes it; null when it does not exist. */
  async headerOf(path: string, query: Query, header: string): Promise<string | null> {
    const signal = AbortSignal.timeout(REQUEST_MS_MAX)
    try {
      const response = await this.#send(
        { method: 'HEAD', path: pathOf(path, query), signal, agent: this.#agent },
        (sent) => sent.end(),
      )
      response.resume()
      const value = response.headers[header]
      return typeof value === 'string' ? value : null
    } catch (error) {
      return nullIfMissing(error)
    }
  }

  /** Sends a body of any length, and returns the response as text. */
  async send(method: Method, path: string, query: Query, body: Readable): Promise<string> {
    const signal = AbortSignal.timeout(LOAD_MS_MAX)
    const headers = { 'Content-Type': 'application/x-tar' }
    const response = await this.#send({ method, path: pathOf(path, query), headers, signal, agent: false }, (sent) => {
      // A failure to send destroys the request, which reports it.
      pipeline(body, sent).catch(() => undefined)
    })
    return textOf(response)
  }

  /** A response without an end. It ends with the signal. */
  stream(path: string, query: Query, signal: AbortSignal): Promise<IncomingMessage> {
    return this.#send({ method: 'GET', path: pathOf(path, query), signal, agent: false }, (sent) => sent.end())
  }

  /** A connection whose bytes go to a container. */
  attach(path: string, query: Query): Promise<Socket> {
    const headers = { Connection: 'Upgrade', Upgrade: 'tcp', 'Content-Length': 0 }
    const options = { method: 'POST', path: pathOf(path, query), headers, agent: false as const }
    return new Promise((resolve, reject) => {
      const sent = this.#request({ ...options, signal: AbortSignal.timeout(REQUEST_MS_MAX) })
      sent.once('upgrade', (_response, socket: Socket) => resolve(socket))
      sent.once('response', (response) => failureOf(response).then(reject, reject))
      sent.once('error', reject)
      sent.end()
    })
  }

  close(): void {
    this.#agent.destroy()
  }

  #request(options: RequestOptions): ReturnType<typeof request> {
    return (this.#is_tls ? tlsRequest : request)({ ...this.#target, ...options })
  }

  async #send(options: RequestOptions, write: (sent: ReturnType<typeof request>) => void): Promise<IncomingMessage> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = this.#request(options)
      sent.once('response', resolve)
      sent.on('error', reject)
      write(sent)
    })
    if ((response.statusCode ?? 0) >= 400) throw await failureOf(response)
    return response
  }
}

/** For a request whose object may have been removed. */
function nullIfMissing(error: unknown): null {
  if (error instanceof EngineError && error.status === 404) return null
  throw error
}

/** For a request whose effect another request had before: a stopped, removed or removing container. */
export function ignoreDone(error: unknown): void {
  if (!(error instanceof EngineError && [304, 404, 409].includes(error.status))) throw error
}

function pathOf(path: string, query: Query = {}): string {
  const text = new URLSearchParams(query).toString()
  return `/${API_VERSION}${path}${text === '' ? '' : `?${text}`}`
}

async function textOf(response: IncomingMessage): Promise<string> {
  const bytes = await readBounded(response, RESPONSE_BYTES_MAX, () => {
    return new Error(`A response of the container engine exceeds ${RESPONSE_BYTES_MAX} bytes.`)
  })
  return bytes.toString()
}

async function failureOf(response: IncomingMessage): Promise<EngineError> {
  const text = await textOf(response)
  const status = response.statusCode ?? 0
  try {
    const { message } = JSON.parse(text) as { message?: string }
    return new EngineError(status, message ?? text)
  } catch {
    return new EngineError(status, text === '' ? `The container engine returned status ${status}.` : text)
  }
}
