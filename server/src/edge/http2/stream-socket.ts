// A stream of HTTP/2 as the edge's HTTP reads and writes a connection (http/connections.ts): the head of the request arrives as
// text, then its body; what is written is the text of a response. So both versions have the same limits, refusals and
// responses, and only this file knows how the fields and the body of a response become frames.
//
// States of the response: head -> body -> whole. A stream that ends before `whole` is reset, so that no response that broke
// looks complete.
import { EventEmitter } from 'node:events'
import { constants, type ServerHttp2Stream } from 'node:http2'
import type { ClientSocket } from '../http/client-socket.ts'
import { readResponseFields } from './response-fields.ts'

type OnWritten = (error?: Error | null) => void

const HEAD_END = '\r\n\r\n'
const STATUS_CONTINUE = 100
const STATUS_FINAL_MIN = 200
const STATUS_NO_CONTENT = 204
const STATUS_RESET_CONTENT = 205
const STATUS_NOT_MODIFIED = 304
const LAST_CHUNK = '0\r\n\r\n'

/** Bytes of bodies that have arrived from the client, and that have left to it, over all streams of its connection. */
export type BodyBytes = { received: number; sent: number }

export type StreamOptions = {
  is_head: boolean
  has_body: boolean
  /** The body is framed as chunks, because its length is not known. */
  is_chunked: boolean
  bytes: BodyBytes
}

export class StreamSocket extends EventEmitter implements ClientSocket {
  readonly remoteFamily = undefined
  bytesRead = 0
  bytesWritten = 0
  readonly #stream: ServerHttp2Stream
  readonly #options: StreamOptions
  #part: 'head' | 'body' | 'whole' = 'head'
  /** Text of a head that has not been written in one piece. */
  #text = ''
  /** Bytes of the response's body that are missing; infinite: the body ends with the stream. */
  #left = 0
  #is_closed = false

  constructor(stream: ServerHttp2Stream, options: StreamOptions) {
    super()
    this.#stream = stream
    this.#options = options
    // A close event follows every error.
    stream.on('error', () => {})
    stream.on('drain', () => void this.emit('drain'))
    stream.on('close', () => this.#onClose())
    if (!options.has_body) return
    stream.on('data', (chunk: Buffer) => this.#onData(chunk))
    stream.on('end', () => this.#onEnd())
  }

  get destroyed(): boolean {
    return this.#is_closed || this.#stream.destroyed || this.#stream.closed
  }

  get writable(): boolean {
    return !this.destroyed && this.#part !== 'whole'
  }

  get writableFinished(): boolean {
    return this.#stream.writableFinished
  }

  get writableNeedDrain(): boolean {
    return this.#stream.writableNeedDrain
  }

  /** Bytes that the client has not taken yet. */
  get is_sending(): boolean {
    return this.#stream.writableLength > 0
  }

  /** The head of the request. */
  begin(head: Buffer): void {
    this.emit('data', head)
  }

  write(data: string | Uint8Array, encoding_or_done?: 'latin1' | OnWritten): boolean {
    const onWritten = typeof encoding_or_done === 'function' ? encoding_or_done : undefined
    if (this.destroyed || this.#part === 'whole') onWritten?.(new Error('The stream has ended.'))
    else if (this.#part === 'body') this.#writeBody(data, onWritten)
    else this.#writeHead(typeof data === 'string' ? data : Buffer.from(data).toString('latin1'))
    return !this.writableNeedDrain
  }

  /** Frames of one turn of the event loop leave together. */
  cork(): void {}
  uncork(): void {}

  end(): void {
    if (this.destroyed || this.#part === 'whole') return
    if (this.#part === 'head' || this.#left !== Number.POSITIVE_INFINITY) {
      this.destroy()
      return
    }
    this.#part = 'whole'
    this.#stream.end()
  }

  destroy(): void {
    if (this.destroyed) return
    // The client needs no more of its body, and has the response.
    if (this.#part === 'whole' && this.#stream.writableFinished) this.#stream.close(constants.NGHTTP2_NO_ERROR)
    else this.#stream.destroy(new Error('The response is broken.'))
  }

  destroySoon(): void {
    this.end()
  }

  resetAndDestroy(): void {
    this.destroy()
  }

  pause(): void {
    if (this.#options.has_body) this.#stream.pause()
  }

  resume(): void {
    if (this.#options.has_body) this.#stream.resume()
  }

  isPaused(): boolean {
    return this.#options.has_body && this.#stream.isPaused()
  }

  #onData(chunk: Buffer): void {
    this.bytesRead += chunk.length
    this.#options.bytes.received += chunk.length
    if (!this.#options.is_chunked) this.emit('data', chunk)
    else if (chunk.length > 0) {
      this.emit('data', Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, CHUNK_END]))
    }
  }

  /** A stream that was reset also ends for its reader. */
  #onEnd(): void {
    const { aborted, closed, destroyed } = this.#stream
    if (this.#options.is_chunked && !aborted && !closed && !destroyed) this.emit('data', Buffer.from(LAST_CHUNK))
  }

  #onClose(): void {
    this.#is_closed = true
    this.emit('close')
  }

  #writeHead(text: string): void {
    this.#text += text
    while (this.#part === 'head') {
      const end = this.#text.indexOf(HEAD_END)
      if (end === -1) return
      const { status, fields, content_length } = readResponseFields(this.#text, end)
      const rest = this.#text.slice(end + HEAD_END.length)
      this.#text = ''
      if (status < STATUS_FINAL_MIN) {
        if (status === STATUS_CONTINUE) this.#stream.additionalHeaders({ ':status': status })
        this.#text = rest
        continue
      }
      this.#left = this.#hasNoBody(status) ? 0 : (content_length ?? Number.POSITIVE_INFINITY)
      const endStream = this.#left === 0
      this.#part = endStream ? 'whole' : 'body'
      try {
        this.#stream.respond(fields, { endStream })
      } catch {
        // A response that HTTP/2 cannot carry, of a status above 599.
        this.#stream.destroy(new Error('The response is broken.'))
        return
      }
      if (!endStream && rest !== '') this.#writeBody(rest, undefined)
    }
  }

  #hasNoBody(status: number): boolean {
    if (this.#options.is_head) return true
    return status === STATUS_NO_CONTENT || status === STATUS_RESET_CONTENT || status === STATUS_NOT_MODIFIED
  }

  #writeBody(data: string | Uint8Array, onWritten: OnWritten | undefined): void {
    const { length } = data
    if (length === 0) {
      onWritten?.()
      return
    }
    this.bytesWritten += length
    this.#left -= length
    const done: OnWritten = (error) => {
      if (error == null) this.#options.bytes.sent += length
      onWritten?.(error)
    }
    if (this.#left > 0) {
      this.#stream.write(data, 'latin1', done)
      return
    }
    if (this.#left < 0) {
      onWritten?.(new Error('The body is longer than its length.'))
      this.destroy()
      return
    }
    this.#part = 'whole'
    this.#stream.end(data, 'latin1', done)
  }
}

const CHUNK_END = Buffer.from('\r\n')
