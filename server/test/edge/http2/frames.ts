// A client of HTTP/2 that sends whatever frames a test makes (RFC 9113, 4.1), and keeps those that it receives.
import { EventEmitter, once } from 'node:events'
import type { TestContext } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'

export const DATA = 0
export const HEADERS = 1
export const PRIORITY = 2
export const RST_STREAM = 3
export const SETTINGS = 4
export const PING = 6
export const GOAWAY = 7
export const WINDOW_UPDATE = 8
export const CONTINUATION = 9

export const END_STREAM = 1
export const END_HEADERS = 4

export const NO_ERROR = 0
export const PROTOCOL_ERROR = 1
export const REFUSED_STREAM = 7
export const CANCEL = 8
export const ENHANCE_YOUR_CALM = 11

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const HEAD_BYTES = 9
const LENGTH_7_MAX = 127
const WAIT_MS_MAX = 60_000

export type Frame = { type: number; flags: number; id: number; payload: Buffer }
export type Fields = readonly (readonly [name: string, value: string])[]

export function frame(type: number, flags: number, id: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(id, 5)
  return Buffer.concat([head, payload])
}

export function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index)
  return bytes
}

/** A block of literal fields that no table keeps (RFC 7541, 6.2.2), so it may hold bytes that no other encoder writes. */
export function block(fields: Fields): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), literal(name), literal(value)]))
}

export function literal(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1')
  const length: number[] = []
  let rest = bytes.length
  if (rest < LENGTH_7_MAX) length.push(rest)
  else {
    length.push(LENGTH_7_MAX)
    for (rest -= LENGTH_7_MAX; rest > LENGTH_7_MAX; rest >>= 7) length.push((rest & LENGTH_7_MAX) | 128)
    length.push(rest)
  }
  return Buffer.concat([Buffer.from(length), bytes])
}

export function headers(id: number, fields: Fields, flags: number = END_HEADERS | END_STREAM): Buffer {
  return frame(HEADERS, flags, id, block(fields))
}

export function requestFields(method: string, path: string): Fields {
  return [
    [':method', method],
    [':scheme', 'https'],
    [':authority', 'localhost'],
    [':path', path],
  ]
}

export class FrameClient {
  readonly socket: TLSSocket
  readonly received: Frame[] = []
  is_closed = false
  #bytes = Buffer.alloc(0)
  readonly #changes = new EventEmitter()

  private constructor(socket: TLSSocket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('close', () => {
      this.is_closed = true
      this.#changes.emit('change')
    })
    socket.on('end', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => this.#onData(chunk))
  }

  /** Connects, and sends the preface with these settings. */
  static async connect(
    t: TestContext,
    port: number,
    { host = 'localhost', settings = Buffer.alloc(0) }: { host?: string; settings?: Buffer } = {},
  ): Promise<FrameClient> {
    const options = { port, host: '127.0.0.1', servername: host, rejectUnauthorized: false, ALPNProtocols: ['h2'] }
    const socket = connect(options)
    await once(socket, 'secureConnect')
    t.after(() => void socket.destroy())
    const client = new FrameClient(socket)
    client.write(Buffer.from(PREFACE), frame(SETTINGS, 0, 0, settings))
    return client
  }

  write(...frames: Buffer[]): boolean {
    return this.socket.writable && this.socket.write(Buffer.concat(frames))
  }

  of(type: number, id?: number): Frame[] {
    return this.received.filter((one) => one.type === type && (id === undefined || one.id === id))
  }

  /** The codes of RST_STREAM for the stream, and of GOAWAY. */
  codes(id?: number): number[] {
    const resets = this.of(RST_STREAM, id).map(({ payload }) => payload.readUInt32BE(0))
    return [...resets, ...this.of(GOAWAY).map(({ payload }) => payload.readUInt32BE(4))]
  }

  body(id: number): Buffer {
    return Buffer.concat(this.of(DATA, id).map(({ payload }) => payload))
  }

  /** Resolves once `check` is true after a frame, or the connection is closed. */
  async when(check: () => boolean): Promise<void> {
    const signal = AbortSignal.timeout(WAIT_MS_MAX)
    while (!this.is_closed && !check()) await once(this.#changes, 'change', { signal })
  }

  async ended(id: number): Promise<void> {
    await this.when(() => this.#isEnded(id))
  }

  async closed(): Promise<void> {
    await this.when(() => false)
  }

  #isEnded(id: number): boolean {
    const own = this.received.filter((one) => one.id === id)
    return own.some(({ type, flags }) => type === RST_STREAM || (type <= HEADERS && (flags & END_STREAM) !== 0))
  }

  #onData(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    while (this.#bytes.length >= HEAD_BYTES) {
      const end = HEAD_BYTES + this.#bytes.readUIntBE(0, 3)
      if (this.#bytes.length < end) break
      const [type, flags] = [this.#bytes[3]!, this.#bytes[4]!]
      const payload = Buffer.from(this.#bytes.subarray(HEAD_BYTES, end))
      this.received.push({ type, flags, id: this.#bytes.readUInt32BE(5), payload })
      this.#bytes = this.#bytes.subarray(end)
    }
    this.#changes.emit('change')
  }
}
