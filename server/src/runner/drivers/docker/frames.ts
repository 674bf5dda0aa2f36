// The engine's stream of output: frames with a header of eight bytes (the stream, then the length), each one message with
// its time in front. A message is a line with its newline, or a part of a long line. A container with a terminal has no
// headers: each line has its time in front.
import type { LogStream } from '../../../lobby-logs/files.ts'

const HEADER_BYTES = 8
const LENGTH_OFFSET = 4
const STDERR = 2
/** Bytes of one message. The engine splits lines at 16 KiB. */
const FRAME_BYTES_MAX = 1024 ** 2
const SPACE = 32
const NEWLINE = 10

/** `ts`: RFC 3339 with nanoseconds. */
export type Frame = { stream: LogStream; ts: string; bytes: Buffer }

export class Frames {
  #rest: Buffer = Buffer.alloc(0)

  /** Returns the whole frames. Throws when the bytes are not such a stream. */
  take(chunk: Buffer): Frame[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const found: Frame[] = []
    let start = 0
    while (bytes.length - start >= HEADER_BYTES) {
      const length = bytes.readUInt32BE(start + LENGTH_OFFSET)
      if (length > FRAME_BYTES_MAX) throw new Error('The container engine sent output in an unknown form.')
      const end = start + HEADER_BYTES + length
      if (end > bytes.length) break
      const stream = bytes[start] === STDERR ? 'stderr' : 'stdout'
      found.push(frameOf(stream, bytes.subarray(start + HEADER_BYTES, end)))
      start = end
    }
    // A slice would keep the whole chunk alive.
    this.#rest = Buffer.from(bytes.subarray(start))
    return found
  }

  /** A message that the engine has not sent whole is read again. */
  end(): Frame[] {
    return []
  }
}

/** The output of a terminal, by lines: how the stream is cut differs from one reading to the next. */
export class TerminalFrames {
  #rest: Buffer = Buffer.alloc(0)

  take(chunk: Buffer): Frame[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const found: Frame[] = []
    let start = 0
    for (;;) {
      const newline = bytes.indexOf(NEWLINE, start)
      if (newline === -1) break
      found.push(frameOf('stdout', bytes.subarray(start, newline + 1)))
      start = newline + 1
    }
    // The log keeps only the beginning of a longer line.
    this.#rest = Buffer.from(bytes.subarray(start, start + FRAME_BYTES_MAX))
    return found
  }

  /** What is left when the stream has ended. */
  end(): Frame[] {
    const rest = this.#rest
    this.#rest = Buffer.alloc(0)
    return rest.includes(SPACE) ? [frameOf('stdout', rest)] : []
  }
}

function frameOf(stream: LogStream, message: Buffer): Frame {
  const space = message.indexOf(SPACE)
  const ts = message.toString('latin1', 0, Math.max(0, space))
  if (Number.isNaN(Date.parse(ts))) throw new Error('The container engine sent output without its time.')
  return { stream, ts, bytes: message.subarray(space + 1) }
}
