// Asks a server for its players over UDP, in one of the two languages of queries.
import { createSocket } from 'node:dgram'

/** Messages of a server that one question reads. */
const REPLIES_MAX = 4

/** What a server says of itself. */
export type ServerQuery = { players: number; max_players: number; name: string; map: string; game: string }

/** `next`: the following request, the result, or null for a reply that is not valid. */
export type QueryLanguage = { first: Buffer; next(reply: Buffer): Buffer | ServerQuery | null }

/** Rejects when the server does not respond in time, or not in this language. */
export function ask(
  language: QueryLanguage,
  { host, port, timeout_ms }: { host: string; port: number; timeout_ms: number },
): Promise<ServerQuery> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    let replies = 0
    const end = (settle: () => void) => {
      clearTimeout(timer)
      socket.removeAllListeners()
      socket.on('error', () => undefined)
      socket.close()
      settle()
    }
    const fail = (message: string) => end(() => reject(new Error(message)))
    const timer = setTimeout(() => fail(`No response within ${timeout_ms} ms.`), timeout_ms)
    timer.unref()
    socket.unref()
    socket.once('error', (error) => fail(error.message))
    socket.on('message', (reply) => {
      const next = language.next(reply)
      if (next === null || ++replies > REPLIES_MAX) fail('The response is not valid.')
      else if (Buffer.isBuffer(next)) socket.send(next)
      else end(() => resolve(next))
    })
    // Connected: a message from another address is dropped by the kernel.
    socket.connect(port, host, () => socket.send(language.first))
  })
}

/** Reads a reply from its beginning. Throws a RangeError past its end. */
export class ReplyReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  u8(): number {
    return this.#bytes.readUInt8(this.#move(1))
  }

  u16be(): number {
    return this.#bytes.readUInt16BE(this.#move(2))
  }

  u16le(): number {
    return this.#bytes.readUInt16LE(this.#move(2))
  }

  u32be(): number {
    return this.#bytes.readUInt32BE(this.#move(4))
  }

  /** A text after a byte with its length. */
  countedText(): string {
    const length = this.u8()
    const from = this.#move(length)
    if (this.#at > this.#bytes.length) throw new RangeError('The text is cut off.')
    return this.#bytes.toString('utf8', from, this.#at)
  }

  /** A text that a byte 0 ends. */
  endedText(): string {
    const end = this.#bytes.indexOf(0, this.#at)
    if (end < 0) throw new RangeError('The text has no end.')
    return this.#bytes.toString('utf8', this.#move(end + 1 - this.#at), end)
  }

  #move(count: number): number {
    const from = this.#at
    this.#at += count
    return from
  }
}

/** Null in place of a RangeError. */
export function readReply<T>(bytes: Buffer, read: (reader: ReplyReader) => T | null): T | null {
  try {
    return read(new ReplyReader(bytes))
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}
