// Stored files as answers: small ones from memory, large ones streamed as fast as they are taken. Where everything is at
// hand the answer leaves without a turn of the event loop.
import type { Context } from '../../context.ts'
import { answer, beginAnswer, breakAnswer, endAnswer } from '../http/answer.ts'
import type { Exchange } from '../http/exchange.ts'
import { MEMORY_FILE_BYTES_MAX } from '../limits.ts'
import { createMemory, type Encoding } from './memory.ts'
import type { Range } from './representation.ts'

type StoredFile = { object_key: string; content_length: number }

/** Each adds Content-Length to the headers; to a HEAD it answers no more than them. */
export type Send = {
  bytes: (to: Exchange, status: number, headers: string[], body: Buffer) => void
  /** The file, or a range of it with its Content-Range. */
  file: (to: Exchange, file: StoredFile, range: Range | null, headers: string[]) => void | Promise<void>
  /** The file, packed by us. */
  packed: (to: Exchange, file: StoredFile, encoding: Encoding, headers: string[]) => void | Promise<void>
}

export const NOSNIFF = ['x-content-type-options', 'nosniff']

export function createSend(ctx: Context): Send {
  const memory = createMemory(ctx.objects)

  function bytes(to: Exchange, status: number, headers: string[], body: Buffer): void {
    answer(to, status, [...headers, 'content-length', String(body.length)], body)
  }

  return {
    bytes,
    file(to, { object_key, content_length }, range, headers) {
      const { start, end } = range ?? { start: 0, end: content_length - 1 }
      const status = range === null ? 200 : 206
      if (range !== null) headers.push('content-range', `bytes ${start}-${end}/${content_length}`)
      headers.push('content-length', String(end + 1 - start))
      if (to.method === 'HEAD') {
        answer(to, status, headers, null)
      } else if (content_length <= MEMORY_FILE_BYTES_MAX) {
        return then(memory.read(object_key, null), (all) =>
          answer(to, status, headers, range === null ? all : all.subarray(start, end + 1)),
        )
      } else {
        return streamFile(ctx, to, { object_key, range: { start, end } }, () => beginAnswer(to, status, headers))
      }
    },
    packed: (to, { object_key }, encoding, headers) =>
      then(memory.read(object_key, encoding), (all) => bytes(to, 200, headers, all)),
  }
}

/** Goes on at once with what is there already: most requests find it so, and a promise each would cost them a turn. */
export function then<T, R>(value: T | Promise<T>, go: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(go) : go(value)
}

async function streamFile(
  ctx: Context,
  to: Exchange,
  { object_key, range }: { object_key: string; range: Range },
  begin: () => void,
): Promise<void> {
  const bytes = await ctx.objects.read(object_key, range)
  if (to.is_over) {
    bytes.destroy()
    return
  }
  const { socket } = to.connection
  let left = range.end + 1 - range.start
  begin()
  to.onDrain = () => void bytes.resume()
  to.onLost = () => void bytes.destroy()
  bytes.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (!socket.write(chunk)) bytes.pause()
  })
  const onError = (error: Error) => {
    ctx.log.error({ err: error, object_key }, 'a stored file cannot be read')
    breakAnswer(to)
  }
  bytes.once('error', onError)
  bytes.once('end', () => {
    if (left === 0) endAnswer(to)
    else onError(new Error('The object is shorter than its row says.'))
  })
}
