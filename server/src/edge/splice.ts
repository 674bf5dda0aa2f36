// Joins two sockets, after a 101 response or from their first byte. Each side is read as fast as the other one writes. The end
// of one direction is forwarded, and the other direction may finish within a time limit. A side that breaks resets the
// other: a backend that never closes half-open sockets would otherwise keep a descriptor for every broken connection.
//
// A splice can be held: it reads nothing more, and everything it has read is written. Then both sockets may continue in
// another process (hand-over/).
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { isTcp, startReading, stopReading } from './handles.ts'
import { HangUps } from './hang-ups.ts'
import {
  FIRST_BYTES_MS_MAX,
  HALF_CLOSED_MS_MAX,
  HALF_CLOSED_TOTAL_MS_MAX,
  HEADER_MS_MAX,
  HOLD_MS_MAX,
  HOLD_PAUSE_MS,
  SPLICE_IDLE_MS_MAX,
  TCP_KEEP_ALIVE_MS,
} from './limits.ts'
import { breakOff, isSecure } from './tls/tls.ts'

/** Maxima of silence. `first_byte_ms`: for a connection that has not carried a byte yet. */
export type SpliceTimes = { idle_ms: number; first_byte_ms?: number }

/** Inspects the first bytes of the client, until it has decided about them. */
export type FirstBytesFilter = {
  /** Returns the bytes that may pass now. `held`: none, more bytes decide. */
  take: (chunk: Buffer) => FilterVerdict
  /** The same after bytes were held for FIRST_BYTES_MS_MAX. */
  late: () => FilterVerdict
  /** The same when the client has ended. */
  end: () => FilterVerdict
  /** Whether all further bytes pass. */
  isDecided: () => boolean
}

export type FilterVerdict = Buffer | 'held' | 'refused'

/** All splices of this process share the maximum of a turn. */
const hang_ups = new HangUps<() => void>((end) => end())

const AFTER_HANDSHAKE: SpliceTimes = { idle_ms: SPLICE_IDLE_MS_MAX }

/** Owns both sockets from here on. */
export function splice(
  client: Socket,
  upstream: Socket,
  times: SpliceTimes = AFTER_HANDSHAKE,
  filter: FirstBytesFilter | null = null,
): Splice {
  return new Splice(client, upstream, { times, filter, is_held: false })
}

/** Joins two sockets that another process had, and still has. This process reads and resets nothing before `resume`. */
export function spliceHeld(client: Socket, upstream: Socket): Splice {
  return new Splice(client, upstream, { times: AFTER_HANDSHAKE, filter: null, is_held: true })
}

type SpliceOptions = { times: SpliceTimes; filter: FirstBytesFilter | null; is_held: boolean }

export class Splice {
  readonly client: Socket
  readonly upstream: Socket
  /** Null once the first bytes have been decided, and where none are inspected. */
  #undecided: FirstBytesFilter | null
  /** Runs while bytes are held. */
  #held_timer: NodeJS.Timeout | null = null
  #is_half_closed = false
  #is_held: boolean
  readonly #unlisten: (() => void)[] = []

  constructor(client: Socket, upstream: Socket, { times, filter, is_held }: SpliceOptions) {
    this.client = client
    this.upstream = upstream
    this.#undecided = filter
    this.#is_held = is_held
    this.#listen(client, 'timeout', () => this.#resetBoth())
    client.setTimeout(times.first_byte_ms ?? times.idle_ms)
    if (times.first_byte_ms !== undefined) this.#awaitFirstByte(times.idle_ms)
    upstream.setTimeout(0)
    for (const socket of [client, upstream]) {
      // The reason does not matter: a close event follows every error.
      socket.on('error', ignore)
      socket.setNoDelay(true)
      socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS)
    }
    this.#forward(client, upstream)
    this.#forward(upstream, client)
    this.#listen(client, 'close', () => {
      this.#stopHeldTimer()
      if (!upstream.destroyed) this.#breakOff(upstream)
    })
    this.#listen(upstream, 'close', () => {
      if (client.destroyed) return
      if (upstream.readableEnded) this.#startHalfClosed()
      else this.#breakOff(client)
    })
  }

  /** Whether `hold` may succeed now. */
  get is_movable(): boolean {
    return !this.#is_held && !isSecure(this.client) && isTcp(this.upstream) && this.#isWhole()
  }

  /**
   * Stops reading, and resolves with true when everything that was read has been written. Resolves with false, and continues,
   * where that is not possible: over TLS, after the end of one side, before the first bytes are decided, and beside a side
   * that takes no bytes for HOLD_MS_MAX.
   */
  async hold(): Promise<boolean> {
    if (!this.is_movable) return false
    this.#is_held = true
    stopReading(this.client)
    stopReading(this.upstream)
    const isWritten = (): boolean => this.client.writableLength === 0 && this.upstream.writableLength === 0
    for (let waited_ms = 0; !isWritten() && waited_ms < HOLD_MS_MAX; waited_ms += HOLD_PAUSE_MS) {
      await delay(HOLD_PAUSE_MS)
    }
    if (isWritten() && this.#isWhole()) return true
    this.resume()
    return false
  }

  /** Continues after `hold`, or with sockets that were held in another process. */
  resume(): void {
    this.#is_held = false
    for (const socket of [this.client, this.upstream]) if (!socket.destroyed) startReading(socket)
  }

  /** Breaks both sides. Resolves when the upstream is closed. */
  async end(): Promise<void> {
    const closed = this.upstream.closed ? null : once(this.upstream, 'close')
    this.#resetBoth()
    await closed
  }

  /** Closes the descriptors of this process. Another process has both connections, and they stay open. */
  release(): void {
    for (const unlisten of this.#unlisten) unlisten()
    this.client.destroy()
    this.upstream.destroy()
  }

  #isWhole(): boolean {
    const is_open = !this.client.destroyed && !this.upstream.destroyed && !this.#is_half_closed
    return is_open && this.#undecided === null
  }

  #awaitFirstByte(idle_ms: number): void {
    const onFirstByte = (): void => {
      for (const socket of [this.client, this.upstream]) socket.off('data', onFirstByte)
      if (!this.#is_half_closed) this.client.setTimeout(idle_ms)
    }
    for (const socket of [this.client, this.upstream]) this.#listen(socket, 'data', onFirstByte)
  }

  #forward(from: Socket, to: Socket): void {
    const is_client = from === this.client
    const pass = (chunk: Buffer): void => {
      // Bytes that arrive after the other side is gone are dropped, and must not delay the end.
      if (to.writable && !to.write(chunk)) from.pause()
    }
    const passFilter = (filter: FirstBytesFilter, verdict: FilterVerdict): void => {
      if (verdict === 'held') {
        this.#held_timer ??= setTimeout(() => passLate(filter), FIRST_BYTES_MS_MAX)
        return
      }
      this.#stopHeldTimer()
      if (filter.isDecided() || verdict === 'refused') this.#undecided = null
      if (verdict === 'refused') this.#resetBoth()
      else if (verdict.length > 0) pass(verdict)
    }
    const passLate = (filter: FirstBytesFilter): void => {
      const verdict = filter.late()
      if (verdict === 'held') this.#held_timer = setTimeout(() => this.#resetBoth(), HEADER_MS_MAX)
      else passFilter(filter, verdict)
    }
    const resume = (): void => {
      if (!this.#is_held) from.resume()
    }
    this.#listen(from, 'data', (chunk: Buffer) => {
      if (is_client && this.#undecided !== null) passFilter(this.#undecided, this.#undecided.take(chunk))
      else pass(chunk)
    })
    this.#listen(to, 'drain', resume)
    this.#listen(to, 'close', resume)
    const end = (): void => {
      if (is_client && this.#undecided !== null) {
        passFilter(this.#undecided, this.#undecided.end())
        this.#undecided = null
      }
      to.end()
      this.#startHalfClosed()
    }
    this.#listen(from, 'end', () => hang_ups.add(end))
  }

  #stopHeldTimer(): void {
    if (this.#held_timer !== null) clearTimeout(this.#held_timer)
    this.#held_timer = null
  }

  #startHalfClosed(): void {
    this.client.setTimeout(HALF_CLOSED_MS_MAX)
    if (this.#is_half_closed || this.client.destroyed) return
    this.#is_half_closed = true
    // A side that sends now and then to one that never reads would last until the system's buffers are full.
    const deadline = setTimeout(() => this.#resetBoth(), HALF_CLOSED_TOTAL_MS_MAX).unref()
    this.client.once('close', () => clearTimeout(deadline))
  }

  #resetBoth(): void {
    this.#breakOff(this.client)
    this.#breakOff(this.upstream)
  }

  /** While another process may have the connection too, only the descriptor is closed. */
  #breakOff(socket: Socket): void {
    if (this.#is_held) socket.destroy()
    else breakOff(socket)
  }

  #listen(socket: Socket, event: string, listener: (...args: never[]) => void): void {
    const heard = listener as () => void
    socket.on(event, heard)
    this.#unlisten.push(() => void socket.off(event, heard))
  }
}

function ignore(): void {}
