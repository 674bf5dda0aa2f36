// The edge's end of trunks: one connection to each process of a role, over which requests with small bodies go
// (wire/trunk-frames.ts). A trunk is opened by the first request, which waits for it. A role without trunks gets its requests
// over HTTP. A lost trunk ends the requests that were sent over it; the others may be sent again.
import type { Socket } from 'node:net'
import { EDGE_PROOF_HEADER, TRUNK_HEADER } from '../../wire/headers.ts'
import {
  FRAMES,
  type FrameBatch,
  FrameReader,
  readBody,
  readResponse,
  type TrunkBody,
  type TrunkResponse,
} from '../../wire/trunk-frames.ts'
import { commonVersion, TRUNK_PROTOCOL, TRUNK_VERSIONS } from '../../wire/trunk-opening.ts'
import { TrunkWriter } from '../../wire/trunk-writer.ts'
import type { Body } from '../http/body.ts'
import { type Ticks, ticksOf } from '../http/ticks.ts'
import {
  CONNECT_MS_MAX,
  TRUNK_ABSENT_MS,
  TRUNK_OPEN_MS_MAX,
  TRUNK_PING_EVERY_MS,
  TRUNK_SILENT_MS_MAX,
  TRUNKS_MAX,
} from '../limits.ts'
import { connectSharingReads } from '../node-internals.ts'
import type { Address } from '../routes/routes.ts'
import { isSecure } from '../tls/tls.ts'

/** A request over a trunk, and its response. */
export class TrunkStream<Request> {
  readonly trunk: Trunk<Request>
  readonly request: Request
  /** 0: the request has not been sent, and may be sent elsewhere. */
  number = 0
  /** The role has said that the request waits. */
  is_waiting = false
  /** Null: the head of the response has not arrived yet. */
  body: Body | null = null
  to_chunks = false
  /** Bytes that the client has not taken yet: the role may not send as many more. */
  owed_bytes = 0

  constructor(trunk: Trunk<Request>, request: Request) {
    this.trunk = trunk
    this.request = request
  }
}

export type TrunkOptions<Request> = {
  ticks: Ticks
  /** The proof of this edge. */
  proof: string
  /** Writes the request into a frame. */
  encode: (request: Request, number: number, batch: FrameBatch) => void
  /** The request was not sent: the role has no trunks, or wants no further request over this one. */
  onAbsent: (request: Request) => void
  /** The request was not sent, because there is no connection. */
  onUnsent: (request: Request, error: Error) => void
  onWaits: (request: Request) => void
  /** Part of a response. `response`: its head. Returns false for what cannot be a part of it. */
  onResponse: (
    stream: TrunkStream<Request>,
    response: TrunkResponse | null,
    part: TrunkBody & { bytes: Buffer; end: number },
  ) => boolean
  /** No response will come, or not the rest of it. */
  onLost: (request: Request) => void
}

const CONNECT_TICKS = ticksOf(CONNECT_MS_MAX)
const OPEN_TICKS = ticksOf(TRUNK_OPEN_MS_MAX)
const ABSENT_TICKS = ticksOf(TRUNK_ABSENT_MS)
const PING_TICKS = ticksOf(TRUNK_PING_EVERY_MS)
const SILENT_TICKS = ticksOf(TRUNK_SILENT_MS_MAX)

export class Trunks<Request> {
  readonly #options: TrunkOptions<Request>
  /** By keyOf() their address. */
  readonly #trunks = new Map<string, Trunk<Request>>()

  constructor(options: TrunkOptions<Request>) {
    this.#options = options
    options.ticks.on(() => {
      for (const trunk of this.#trunks.values()) trunk.check()
    })
  }

  /** Returns the trunk to the process at this address. Null: its requests go over HTTP. */
  at(address: Address): Trunk<Request> | null {
    const key = keyOf(address)
    const known = this.#trunks.get(key)
    if (known !== undefined && !known.is_over) return known.is_usable ? known : null
    if (this.#trunks.size >= TRUNKS_MAX) this.#closeIdle()
    if (this.#trunks.size >= TRUNKS_MAX) return null
    const trunk = new Trunk(address, this.#options)
    this.#trunks.set(key, trunk)
    return trunk
  }

  /** No response will come from this address, over TLS or not. */
  drop(address: Address): void {
    const plain = nameOf(address)
    for (const key of [plain, `${plain}${TLS_KEY}`]) this.#trunks.get(key)?.close()
  }

  close(): void {
    for (const trunk of this.#trunks.values()) trunk.close()
  }

  #closeIdle(): void {
    for (const [key, trunk] of this.#trunks) {
      if (!trunk.is_idle) continue
      trunk.close()
      this.#trunks.delete(key)
    }
  }
}

const TLS_KEY = ' tls'

function keyOf(address: Address): string {
  return address.tls === undefined ? nameOf(address) : `${nameOf(address)}${TLS_KEY}`
}

function nameOf({ hostname, port, path }: Address): string {
  return path ?? `${hostname}:${port}`
}

const ACCEPTED = 'HTTP/1.1 101 '
const HEAD_END = '\r\n\r\n'
/** Characters of the head with which a role opens a trunk. */
const HEAD_LENGTH_MAX = 1_024
const CHOSEN_VERSION = new RegExp(`\r\n${TRUNK_HEADER}: (\\d+)\r\n`, 'i')
const STREAMS_END = 0xffffffff

/**
 * - `opening`: requests wait here until the role accepts the trunk.
 * - `open`: requests are sent.
 * - `stopped`: the role wants no further request; responses still come.
 * - `absent`: the role has no trunks. It is asked again later.
 * - `over`: the connection is closed.
 */
type State = 'opening' | 'open' | 'stopped' | 'absent' | 'over'

export class Trunk<Request> {
  readonly #options: TrunkOptions<Request>
  readonly #socket: Socket
  readonly #writer: TrunkWriter
  readonly #reader = new FrameReader((kind, number, bytes, start, end) =>
    this.#onFrame(kind, number, bytes, start, end),
  )
  #state: State = 'opening'
  #is_connected = false
  #error: Error | null = null
  #head = ''
  #unsent = new Set<TrunkStream<Request>>()
  readonly #streams = new Map<number, TrunkStream<Request>>()
  #last_number = 0
  /** Numbers begin again at 1 after the last one. */
  #highest_number = 0
  /** The tick at which the state began, or the last ping was sent. */
  #since: number
  /** The tick of a ping since which nothing has arrived. */
  #unheard_since: number | null = null

  constructor(address: Address, options: TrunkOptions<Request>) {
    this.#options = options
    this.#since = options.ticks.now
    const socket = connectSharingReads(address, { onRead: (shared, length) => this.#onRead(shared, length) })
    this.#socket = socket
    this.#writer = new TrunkWriter(socket, () => this.#sendWaiting())
    socket.once(isSecure(socket) ? 'secureConnect' : 'connect', () => {
      this.#is_connected = true
      this.#since = options.ticks.now
      socket.setKeepAlive(true, TRUNK_PING_EVERY_MS)
    })
    socket.on('error', (error) => {
      this.#error = error
    })
    socket.on('end', () => socket.destroy())
    socket.once('close', () => this.#onClose())
    socket.write(
      `GET / HTTP/1.1\r\nHost: ${TRUNK_PROTOCOL}\r\nConnection: Upgrade\r\nUpgrade: ${TRUNK_PROTOCOL}\r\n${EDGE_PROOF_HEADER}: ${options.proof}\r\n${TRUNK_HEADER}: ${TRUNK_VERSIONS}\r\n\r\n`,
      'latin1',
    )
  }

  /** Its place may be given to a new one. */
  get is_over(): boolean {
    const { ticks } = this.#options
    return this.#state === 'over' || (this.#state === 'absent' && ticks.now - this.#since >= ABSENT_TICKS)
  }

  /** It takes requests. */
  get is_usable(): boolean {
    return this.#state === 'open' || this.#state === 'opening'
  }

  get is_idle(): boolean {
    return this.#streams.size === 0 && this.#unsent.size === 0
  }

  send(request: Request): TrunkStream<Request> {
    const stream = new TrunkStream(this, request)
    this.#unsent.add(stream)
    if (this.#state === 'open') this.#writer.schedule()
    return stream
  }

  /** The client is gone. */
  cancel(stream: TrunkStream<Request>): void {
    this.#unsent.delete(stream)
    if (!this.#streams.delete(stream.number)) return
    this.#writer.batch.mark(FRAMES.reset, stream.number)
    this.#writer.schedule()
  }

  /** The client has taken what arrived. */
  credit(stream: TrunkStream<Request>): void {
    const { number, owed_bytes } = stream
    stream.owed_bytes = 0
    if (owed_bytes === 0 || !this.#streams.has(number)) return
    this.#writer.batch.credit(number, owed_bytes)
    this.#writer.schedule()
  }

  close(): void {
    this.#socket.destroy()
  }

  /** Called with every tick: ends a trunk that does not open, or whose other end is silent. */
  check(): void {
    const { now } = this.#options.ticks
    const waited = now - this.#since
    if (this.#state === 'opening') {
      if (!this.#is_connected && this.#socket.connecting && waited > CONNECT_TICKS)
        this.#socket.destroy(new Error('The connection takes too long.'))
      else if (this.#is_connected && waited > OPEN_TICKS) this.#becomeAbsent()
      return
    }
    if (this.#streams.size === 0) return
    if (this.#unheard_since !== null && now - this.#unheard_since > SILENT_TICKS) {
      this.#socket.destroy()
    } else if (waited >= PING_TICKS) {
      this.#since = now
      this.#unheard_since ??= now
      this.#writer.batch.mark(FRAMES.ping)
      this.#writer.schedule()
    }
  }

  #sendWaiting(): void {
    if (this.#state !== 'open') return
    const { batch } = this.#writer
    for (const stream of this.#unsent) {
      if (this.#writer.is_full) return
      this.#unsent.delete(stream)
      stream.number = this.#nextNumber()
      this.#streams.set(stream.number, stream)
      this.#options.encode(stream.request, stream.number, batch)
    }
  }

  #nextNumber(): number {
    do this.#last_number = (this.#last_number % STREAMS_END) + 1
    while (this.#streams.has(this.#last_number))
    this.#highest_number = Math.max(this.#highest_number, this.#last_number)
    return this.#last_number
  }

  #onRead(shared: Buffer, length: number): void {
    this.#unheard_since = null
    if (this.#state === 'absent' || this.#state === 'over') return
    if (this.#state === 'opening') this.#onHead(shared.toString('latin1', 0, length))
    else if (!this.#reader.read(shared, length)) this.#socket.destroy()
  }

  #onHead(text: string): void {
    this.#head += text
    const end = this.#head.indexOf(HEAD_END)
    if (end === -1 && this.#head.length <= HEAD_LENGTH_MAX) return
    const version = CHOSEN_VERSION.exec(this.#head)?.[1]
    const is_accepted = end >= 0 && this.#head.startsWith(ACCEPTED) && version !== undefined
    if (!is_accepted || commonVersion(`${version}-${version}`) === null) {
      this.#becomeAbsent()
      return
    }
    const first = Buffer.from(this.#head.slice(end + HEAD_END.length), 'latin1')
    this.#head = ''
    this.#state = 'open'
    this.#since = this.#options.ticks.now
    this.#writer.schedule()
    if (!this.#reader.read(first)) this.#socket.destroy()
  }

  #onFrame(kind: number, number: number, bytes: Buffer, start: number, end: number): boolean {
    switch (kind) {
      case FRAMES.response: {
        const response = readResponse(bytes, start, end)
        if (response === null) return false
        const { body_start, is_last } = response
        return this.#onPart(number, response, { bytes, end, body_start, is_last })
      }
      case FRAMES.body: {
        const part = readBody(bytes, start, end)
        if (part === null) return false
        const { body_start, is_last } = part
        return this.#onPart(number, null, { bytes, end, body_start, is_last })
      }
      case FRAMES.waits:
        return this.#onStream(number, (stream) => {
          if (stream.is_waiting || stream.body !== null) return false
          stream.is_waiting = true
          this.#options.onWaits(stream.request)
          return true
        })
      case FRAMES.reset:
        return this.#onStream(number, ({ request }) => {
          this.#streams.delete(number)
          this.#options.onLost(request)
          return true
        })
      case FRAMES.stop:
        this.#onStop()
        return true
      default:
        return kind === FRAMES.pong
    }
  }

  #onPart(number: number, response: TrunkResponse | null, part: TrunkBody & { bytes: Buffer; end: number }): boolean {
    return this.#onStream(number, (stream) => {
      if ((stream.body === null) === (response === null)) return false
      if (!this.#options.onResponse(stream, response, part)) return false
      if (part.is_last) this.#streams.delete(number)
      return true
    })
  }

  /** The client of a stream that is not known any more has hung up. Returns false for one that never was. */
  #onStream(number: number, use: (stream: TrunkStream<Request>) => boolean): boolean {
    const stream = this.#streams.get(number)
    return stream === undefined ? number !== 0 && number <= this.#highest_number : use(stream)
  }

  #onStop(): void {
    if (this.#state !== 'open') return
    this.#state = 'stopped'
    this.#writer.batch.mark(FRAMES.stopped)
    this.#writer.schedule()
    this.#giveUp((request) => this.#options.onAbsent(request))
  }

  #becomeAbsent(): void {
    this.#state = 'absent'
    this.#since = this.#options.ticks.now
    this.#socket.destroy()
    this.#giveUp((request) => this.#options.onAbsent(request))
  }

  #onClose(): void {
    if (this.#state === 'absent') return
    // The role was there, and did not know what was asked.
    if (this.#state === 'opening' && this.#is_connected && this.#error === null) {
      this.#becomeAbsent()
      return
    }
    this.#state = 'over'
    const error = this.#error ?? new Error('The connection was closed.')
    const lost = [...this.#streams.values()]
    this.#streams.clear()
    for (const { request } of lost) this.#options.onLost(request)
    this.#giveUp((request) => this.#options.onUnsent(request, error))
  }

  #giveUp(use: (request: Request) => void): void {
    const unsent = this.#unsent
    this.#unsent = new Set()
    for (const { request } of unsent) use(request)
  }
}
