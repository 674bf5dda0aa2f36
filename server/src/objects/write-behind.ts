// Writes a file while its bytes arrive. One buffer is filled while the other is written. So a fast sender causes few large
// writes, and the bytes of a slow one are written at once. A long file is flushed while it grows, so that little is left to
// flush at its end. The bytes are copied, so that the caller may reuse its buffer at once.
import type { FileHandle } from 'node:fs/promises'

/** Bytes of each of the two buffers of one body. Many bodies arrive at once, so it bounds the memory of uploads. */
const BUFFER_BYTES_MAX = 1024 * 1024
/** Bytes written since the last flush began. A shorter file is flushed only at its end. */
const UNFLUSHED_BYTES_MAX = 32 * 1024 * 1024

export class WriteBehind {
  readonly #handle: FileHandle
  readonly #buffer_bytes: number
  #filling: Buffer
  #filled = 0
  /** Being written, or free. */
  #other: Buffer | null = null
  #writing: Promise<void> | null = null
  /** Resolved when `#filling` has room again. */
  #room: PromiseWithResolvers<void> | null = null
  #unflushed_bytes = 0
  #flushing: Promise<void> | null = null
  /** The first failure is kept: the system reports a lost page once, and no later write makes the file whole. */
  #failure: { error: unknown } | null = null

  /** Writes at the file's position. No buffer is larger than `bytes_expected`. The caller closes the handle. */
  constructor(handle: FileHandle, bytes_expected: number) {
    this.#handle = handle
    this.#buffer_bytes = Math.max(1, Math.min(BUFFER_BYTES_MAX, bytes_expected))
    this.#filling = this.#newBuffer()
  }

  /**
   * Takes the next bytes. The caller may reuse them when it returns, or, when it returns a promise because the disk is
   * slow, when that promise settles. Throws or rejects with the first failure of a write.
   */
  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#throwFailure()
    if (this.#filled + bytes.length > this.#filling.length) return this.#takeInPieces(bytes)
    this.#take(bytes)
    return undefined
  }

  /** When it resolves, everything is on the disk. Rejects with the first failure. */
  async finish(): Promise<void> {
    await this.settle()
    this.#throwFailure()
    await this.#handle.sync()
  }

  /** When it resolves, nothing accesses the file any more, even after a failure, and it can be closed. */
  async settle(): Promise<void> {
    while (this.#writing !== null || this.#flushing !== null) {
      await this.#writing
      await this.#flushing
    }
  }

  #newBuffer(): Buffer {
    return Buffer.allocUnsafeSlow(this.#buffer_bytes)
  }

  #throwFailure(): void {
    if (this.#failure !== null) throw this.#failure.error
  }

  #giveRoom(): void {
    this.#room?.resolve()
    this.#room = null
  }

  #take(bytes: Uint8Array): void {
    this.#filling.set(bytes, this.#filled)
    this.#filled += bytes.length
    this.#startWrite()
  }

  async #takeInPieces(bytes: Uint8Array): Promise<void> {
    let left = bytes
    while (left.length > 0) {
      if (this.#filled === this.#filling.length) {
        this.#room ??= Promise.withResolvers()
        await this.#room.promise
        this.#throwFailure()
      }
      const piece = left.subarray(0, this.#filling.length - this.#filled)
      left = left.subarray(piece.length)
      this.#take(piece)
    }
  }

  /** Bytes may arrive after the last check of a write and before its end. So it is started once more for them. */
  #startWrite(): void {
    if (this.#writing !== null || this.#filled === 0 || this.#failure !== null) return
    this.#writing = this.#writeFilled()
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#writing = null
        this.#startWrite()
        this.#giveRoom()
      })
  }

  async #writeFilled(): Promise<void> {
    while (this.#filled > 0 && this.#failure === null) {
      const bytes = this.#filling.subarray(0, this.#filled)
      const free = this.#other ?? this.#newBuffer()
      this.#other = this.#filling
      this.#filling = free
      this.#filled = 0
      this.#giveRoom()
      await writeAll(this.#handle, bytes)
      this.#unflushed_bytes += bytes.length
      this.#startFlush()
    }
  }

  #startFlush(): void {
    if (this.#unflushed_bytes < UNFLUSHED_BYTES_MAX || this.#flushing !== null) return
    this.#unflushed_bytes = 0
    this.#flushing = this.#handle
      .datasync()
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#flushing = null
      })
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
  }
}

/** The system may write fewer bytes than it is given. */
async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  let left = bytes
  while (left.length > 0) {
    const { bytesWritten } = await handle.write(left)
    if (bytesWritten === 0) throw new Error('The disk accepts no bytes.')
    left = left.subarray(bytesWritten)
  }
}
