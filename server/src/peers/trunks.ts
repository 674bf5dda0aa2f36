// A role's end of trunks: one connection from each edge, over which it sends many requests at once (wire/trunk-frames.ts). Each
// request is handled as one of the HTTP server. A request that takes longer than WAITS_AFTER_MS is said to wait, whatever it
// waits for: a lobby that starts, a long poll, an external service. The edge then lets the next one pass. When the edge's client
// hangs up, or the trunk is lost, the caller counts as gone.
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createTimerWhileNeeded } from '../flow/timer-while-needed.ts'
import { EDGE_PROOF_HEADER, TRUNK_HEADER } from '../wire/headers.ts'
import { FRAMES, FrameReader, readCredit, readRequest } from '../wire/trunk-frames.ts'
import { commonVersion, TRUNK_PROTOCOL } from '../wire/trunk-opening.ts'
import { TrunkWriter } from '../wire/trunk-writer.ts'
import { requestOf, TrunkedResponse } from './trunk-exchange.ts'

/** Most requests have ended by then, and the edge never hears that they wait. Checked every WAITS_CHECK_MS. */
const WAITS_AFTER_MS = 100
const WAITS_CHECK_MS = 50
/** Trunks, including broken ones that have not been noticed yet. */
const TRUNKS_MAX = 64
/** Requests over one trunk: never reached, because each takes a place at the edge first. */
const STREAMS_MAX = 65_536
/** How often trunks with requests are checked for a silent edge, which pings every 10 s. */
const SILENT_CHECK_MS = 10_000
const SILENT_MS_MAX = 60_000
/** When the role stops, requests under way have this long to end. */
const DRAIN_MS_MAX = 3_000
const DRAIN_CHECK_MS = 20

export class RoleTrunks {
  readonly #proof: string
  readonly #trunks = new Set<EdgeTrunk>()
  #is_closing = false
  readonly #waits = createTimerWhileNeeded(WAITS_CHECK_MS, () => this.#some((trunk) => trunk.reportWaiting()))
  readonly #silence = createTimerWhileNeeded(SILENT_CHECK_MS, () => this.#some((trunk) => trunk.checkSilence()))

  constructor(proof: string) {
    this.#proof = proof
  }

  /** Whether the upgrade is an edge's, and to be given to accept(). */
  isTrunk({ headers }: IncomingMessage): boolean {
    const is_spoken = commonVersion(String(headers[TRUNK_HEADER])) !== null
    const is_asked = headers.upgrade === TRUNK_PROTOCOL && headers[EDGE_PROOF_HEADER] === this.#proof
    return is_asked && is_spoken && this.#trunks.size < TRUNKS_MAX && !this.#is_closing
  }

  /** `handle`: responds to a request, as that of an HTTP server. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, handle: RequestListener): void {
    const version = commonVersion(String(request.headers[TRUNK_HEADER]))
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${TRUNK_PROTOCOL}\r\n${TRUNK_HEADER}: ${version}\r\n\r\n`,
    )
    const trunk: EdgeTrunk = new EdgeTrunk(socket as Socket, {
      ...{ proof: this.#proof, handle },
      onRequests: () => {
        this.#waits.need()
        this.#silence.need()
      },
    })
    this.#trunks.add(trunk)
    socket.once('close', () => this.#trunks.delete(trunk))
    trunk.read(head)
  }

  /** Accepts no further request, waits for those under way, and closes all trunks. */
  async close(): Promise<void> {
    const until = performance.now() + DRAIN_MS_MAX
    this.#is_closing = true
    for (const trunk of this.#trunks) trunk.stop()
    while ([...this.#trunks].some(({ is_done }) => !is_done) && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, DRAIN_CHECK_MS))
    }
    this.#waits.close()
    this.#silence.close()
    for (const trunk of this.#trunks) trunk.close()
  }

  /** Calls the function for every trunk. Returns whether it returned true for any. */
  #some(check: (trunk: EdgeTrunk) => boolean): boolean {
    let is_any = false
    for (const trunk of this.#trunks) if (check(trunk)) is_any = true
    return is_any
  }
}

type TrunkParts = {
  proof: string
  handle: RequestListener
  /** Requests have come. */
  onRequests: () => void
}

class EdgeTrunk {
  readonly #socket: Socket
  readonly #parts: TrunkParts
  readonly #peer: { proof: string; peer: string | undefined }
  readonly #writer: TrunkWriter
  readonly #reader = new FrameReader((kind, number, bytes, start, end) =>
    this.#onFrame(kind, number, bytes, start, end),
  )
  readonly #streams = new Map<number, TrunkedResponse>()
  /** Responses that the edge does not know yet to take long, in the order in which they came. */
  readonly #fresh = new Set<TrunkedResponse>()
  /** Responses with something to send. They take turns. */
  readonly #ready = new Set<TrunkedResponse>()
  #last_number = 0
  #heard_at = performance.now()
  #has_edge_stopped = false

  constructor(socket: Socket, parts: TrunkParts) {
    this.#socket = socket
    this.#parts = parts
    this.#peer = { proof: parts.proof, peer: socket.remoteAddress }
    this.#writer = new TrunkWriter(socket, () => this.#sendReady())
    socket.setNoDelay?.(true)
    socket.setKeepAlive?.(true, SILENT_CHECK_MS)
    socket.on('error', () => socket.destroy())
    socket.on('data', (bytes: Buffer) => this.read(bytes))
    socket.on('end', () => socket.destroy())
    socket.once('close', () => this.#onClose())
  }

  /** Everything that the edge has sent has its response, and it sends nothing more. */
  get is_done(): boolean {
    return this.#has_edge_stopped && this.#streams.size === 0 && this.#socket.writableLength === 0
  }

  read(bytes: Buffer): void {
    this.#heard_at = performance.now()
    if (!this.#reader.read(bytes)) this.#socket.destroy()
  }

  stop(): void {
    this.#writer.batch.mark(FRAMES.stop)
    this.#writer.schedule()
  }

  close(): void {
    this.#socket.destroySoon()
  }

  /** Reports to the edge which requests wait by now. Returns whether there are others that may. */
  reportWaiting(): boolean {
    const now = performance.now()
    for (const response of this.#fresh) {
      if (now - response.since < WAITS_AFTER_MS) return true
      this.#fresh.delete(response)
      this.#writer.batch.mark(FRAMES.waits, response.number)
      this.#writer.schedule()
    }
    return false
  }

  /** Closes the trunk where nothing has come for too long. Returns whether it is to be checked again. */
  checkSilence(): boolean {
    if (this.#streams.size === 0) return false
    if (performance.now() - this.#heard_at > SILENT_MS_MAX) this.#socket.destroy()
    return true
  }

  #onFrame(kind: number, number: number, bytes: Buffer, start: number, end: number): boolean {
    const stream = this.#streams.get(number)
    switch (kind) {
      case FRAMES.request:
        return this.#onRequest(number, bytes, start, end)
      case FRAMES.reset:
        if (stream === undefined) break
        this.#forget(stream)
        stream.leave()
        break
      case FRAMES.credit: {
        const credit = readCredit(bytes, start, end)
        if (credit === 0) return false
        if (stream?.addCredit(credit)) this.#onReady(stream)
        break
      }
      case FRAMES.ping:
        this.#writer.batch.mark(FRAMES.pong)
        this.#writer.schedule()
        return true
      case FRAMES.stopped:
        this.#has_edge_stopped = true
        return true
      default:
        return false
    }
    // The response of a stream that is not known any more was on its way.
    return number !== 0 && number <= this.#last_number
  }

  #onRequest(number: number, bytes: Buffer, start: number, end: number): boolean {
    const received = readRequest(bytes, start, end)
    const is_new = number !== 0 && !this.#streams.has(number)
    if (received === null || !is_new || this.#streams.size >= STREAMS_MAX || this.#has_edge_stopped) return false
    const request = requestOf(received, this.#peer)
    if (request === null) return false
    const since = this.#heard_at
    const response = new TrunkedResponse(request, { number, since, onReady: (ready) => this.#onReady(ready) })
    this.#last_number = Math.max(this.#last_number, number)
    this.#streams.set(number, response)
    this.#fresh.add(response)
    this.#parts.onRequests()
    this.#parts.handle(request, response)
    return true
  }

  #onReady(response: TrunkedResponse): void {
    if (this.#streams.get(response.number) !== response) return
    this.#fresh.delete(response)
    this.#ready.add(response)
    this.#writer.schedule()
  }

  /** Each stream sends one piece, and those with more go to the end. */
  #sendReady(): void {
    const { batch } = this.#writer
    for (const response of this.#ready) {
      if (this.#writer.is_full) return
      this.#ready.delete(response)
      const next = response.destroyed ? 'broken' : response.writeTo(batch)
      if (next === 'more') this.#ready.add(response)
      if (next === 'broken') batch.mark(FRAMES.reset, response.number)
      if (next === 'broken' || next === 'done') this.#streams.delete(response.number)
    }
  }

  #forget(response: TrunkedResponse): void {
    this.#streams.delete(response.number)
    this.#fresh.delete(response)
    this.#ready.delete(response)
  }

  #onClose(): void {
    const left = [...this.#streams.values()]
    this.#streams.clear()
    this.#fresh.clear()
    this.#ready.clear()
    for (const response of left) response.leave()
  }
}
