// Writes the frames of one end of a trunk. All frames of a turn of the event loop leave in one write. While the other end
// takes no bytes, no more than BUFFERED_BYTES_MAX are written: what `fill` would add waits where it is.
import type { Duplex } from 'node:stream'
import { FrameBatch } from './trunk-frames.ts'

/** Bytes that a trunk keeps for the other end. */
const BUFFERED_BYTES_MAX = 1024 * 1024

export class TrunkWriter {
  readonly batch = new FrameBatch()
  readonly #socket: Duplex
  /** Adds frames until `isFull`. Called before each write. */
  readonly #fill: () => void
  #is_scheduled = false

  constructor(socket: Duplex, fill: () => void) {
    this.#socket = socket
    this.#fill = fill
    socket.on('drain', () => this.schedule())
  }

  get is_full(): boolean {
    return this.#socket.writableLength + this.batch.length >= BUFFERED_BYTES_MAX
  }

  /** Writes at the end of this turn of the event loop. */
  schedule(): void {
    if (this.#is_scheduled) return
    this.#is_scheduled = true
    setImmediate(this.#write)
  }

  readonly #write = (): void => {
    this.#is_scheduled = false
    if (this.#socket.destroyed) return
    this.#fill()
    if (this.batch.length > 0) this.#socket.write(this.batch.take())
  }
}
