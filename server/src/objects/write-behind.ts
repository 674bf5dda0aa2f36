// Writing a file while more of it arrives. While one buffer is being written the other is filled, so a fast sender costs
// few large writes, and the bytes of a slow one are written at once. A long file is flushed as it grows: at its end
// there is little left to wait for. The bytes are copied, so that whoever brings them has them back at once.
import type { FileHandle } from 'node:fs/promises'

/** Of each of the two buffers. Times the bodies that arrive at once, it must be affordable. */
const BUFFER_BYTES_MAX = 1024 * 1024
/** Written since the last flush began. What is shorter is flushed at its end only. */
const UNFLUSHED_BYTES_MAX = 32 * 1024 * 1024

export type WriteBehind = {
  /**
   * Takes the next bytes, which are the caller's again when it returns or, when the disk is behind, its promise has
   * ended. Throws or rejects with what went wrong while writing, then or before.
   */
  write: (bytes: Uint8Array) => Promise<void> | undefined
  /** After it everything is on the disk. Rejects with what went wrong. */
  finish: () => Promise<void>
  /** After it nothing touches the file any more, whatever became of it, and it can be closed. */
  settle: () => Promise<void>
}

/** Writes at the file's position; no buffer is larger than `bytes_expected`. The handle stays its owner's. */
export function createWriteBehind(handle: FileHandle, bytes_expected: number): WriteBehind {
  const newBuffer = () => Buffer.allocUnsafeSlow(Math.max(1, Math.min(BUFFER_BYTES_MAX, bytes_expected)))
  let filling: Buffer = newBuffer()
  let filled = 0
  /** Is being written, or free. */
  let other: Buffer | null = null
  let writing: Promise<void> | null = null
  /** For who waits until there is room in `filling`. */
  let room: PromiseWithResolvers<void> | null = null
  let unflushed_bytes = 0
  let flushing: Promise<void> | null = null
  /** The first one is kept: a system tells of a lost page once, and nothing that comes later makes the file whole. */
  let failure: { error: unknown } | null = null

  const fail = (error: unknown): void => {
    failure ??= { error }
  }
  const requireWhole = (): void => {
    if (failure !== null) throw failure.error
  }
  const giveRoom = (): void => {
    room?.resolve()
    room = null
  }

  function startFlush(): void {
    if (unflushed_bytes < UNFLUSHED_BYTES_MAX || flushing !== null) return
    unflushed_bytes = 0
    flushing = handle
      .datasync()
      .catch(fail)
      .finally(() => {
        flushing = null
      })
  }

  async function writeFilled(): Promise<void> {
    while (filled > 0 && failure === null) {
      const bytes = filling.subarray(0, filled)
      const free = other ?? newBuffer()
      other = filling
      filling = free
      filled = 0
      giveRoom()
      await writeAll(handle, bytes)
      unflushed_bytes += bytes.length
      startFlush()
    }
  }

  function take(bytes: Uint8Array): void {
    filling.set(bytes, filled)
    filled += bytes.length
    startWrite()
  }

  /** Bytes may arrive after the last look of a write and before its end: it is started once more for them. */
  function startWrite(): void {
    if (writing !== null || filled === 0 || failure !== null) return
    writing = writeFilled()
      .catch(fail)
      .finally(() => {
        writing = null
        startWrite()
        giveRoom()
      })
  }

  async function takeInPieces(bytes: Uint8Array): Promise<void> {
    let left = bytes
    while (left.length > 0) {
      if (filled === filling.length) {
        room ??= Promise.withResolvers()
        await room.promise
        requireWhole()
      }
      const piece = left.subarray(0, filling.length - filled)
      left = left.subarray(piece.length)
      take(piece)
    }
  }

  async function settle(): Promise<void> {
    while (writing !== null || flushing !== null) {
      await writing
      await flushing
    }
  }

  return {
    write(bytes) {
      requireWhole()
      if (filled + bytes.length > filling.length) return takeInPieces(bytes)
      take(bytes)
      return undefined
    },

    async finish() {
      await settle()
      requireWhole()
      await handle.sync()
    },

    settle,
  }
}

/** The system may take less at once than it is given. */
async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  let left = bytes
  while (left.length > 0) {
    const { bytesWritten } = await handle.write(left)
    if (bytesWritten === 0) throw new Error('The disk takes nothing.')
    left = left.subarray(bytesWritten)
  }
}
