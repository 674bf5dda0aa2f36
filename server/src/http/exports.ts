// GET /exports/...: files that are generated while they are sent (cloud/exports.ts). It is not an operation of the
// contract: a presigned address is the only credential. A limited number is sent at once, and a client that stops reading is
// cut off.
import { Readable } from 'node:stream'
import { ApiError } from '@musterhost/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { openExport } from '../cloud/exports.ts'
import type { Context } from '../context.ts'

/** Exports that are being fetched at once. */
const EXPORTS_AT_ONCE_MAX = 32
/** A client that takes no byte for this long is cut off. */
const SILENCE_MS_MAX = 30_000

/** The first chunk is read before the head is sent: until then an error has a response, later the body just ends. */
async function* loggingFaults(
  ctx: Context,
  begun: IteratorResult<string | Uint8Array>,
  rest: AsyncGenerator<string | Uint8Array>,
): AsyncGenerator<string | Uint8Array> {
  if (begun.done) return
  try {
    yield begun.value
    yield* rest
  } catch (error) {
    ctx.log.error({ err: error }, 'an export was broken off')
    throw error
  }
}

export function registerExports(app: FastifyInstance, ctx: Context): void {
  let under_way = 0
  app.get('/exports/*', async (request: FastifyRequest, reply: FastifyReply) => {
    const { name, content_type, content } = openExport(ctx, request.raw.url ?? '')
    if (under_way >= EXPORTS_AT_ONCE_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 5 })
    under_way++
    const { socket } = request.raw
    const giveUp = (): void => void socket.destroy()
    socket.setTimeout(SILENCE_MS_MAX, giveUp)
    reply.raw.once('close', () => {
      under_way--
      socket.removeListener('timeout', giveUp)
      socket.setTimeout(0)
    })
    const begun = await content.next()
    return reply
      .type(content_type)
      .header('content-disposition', `attachment; filename="${name}"`)
      .header('cache-control', 'private, no-store')
      .send(Readable.from(loggingFaults(ctx, begun, content), { objectMode: false }))
  })
}
