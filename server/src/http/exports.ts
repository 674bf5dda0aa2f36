// GET /exports/...: files that are made while they are fetched (cloud/lobbies/exports.ts). Not an operation of the contract:
// whoever holds a presigned address needs no other credential. So many at once, and whoever does not read is cut off.
import { Readable } from 'node:stream'
import { ApiError } from '@muster/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { openExport } from '../cloud/lobbies/exports.ts'
import type { Context } from '../context.ts'

const EXPORTS_AT_ONCE_MAX = 32
/** A reader who takes nothing for so long is given up. */
const SILENCE_MS_MAX = 30_000

/** Its beginning is there already: what cannot be had is refused in words. Later it can only be broken off. */
async function* loggingFaults(
  ctx: Context,
  begun: IteratorResult<string>,
  rest: AsyncGenerator<string>,
): AsyncGenerator<string> {
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
