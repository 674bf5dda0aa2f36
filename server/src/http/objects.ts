// PUT /objects/<key>: where the bytes of uploads arrive. Not an operation of the contract: whoever holds a presigned
// address needs no other credential, and the body is a stream of any type and length that is never held in memory.
import { ApiError } from '@muster/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { requireAwaited, storeObject } from '../cloud/uploads.ts'
import type { Context } from '../context.ts'
import { type PutGrant, verifyPut } from '../objects/presign.ts'

/** A sender who is silent for so long is given up; one who merely is slow is not. */
const SILENCE_MS_MAX = 30_000
/** Bodies that arrive at the same time in one process. */
const PUTS_AT_ONCE_MAX = 256

export function registerObjectRoutes(app: FastifyInstance, ctx: Context): void {
  let under_way = 0

  async function put(request: FastifyRequest, reply: FastifyReply): Promise<object> {
    under_way++
    try {
      if (under_way > PUTS_AT_ONCE_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
      const grant = grantOf(ctx, request)
      await requireAwaited(ctx, grant)
      await receive(ctx, grant, request)
      return {}
    } catch (error) {
      // Nobody reads the rest of the body, so the connection cannot carry another request.
      if (!request.raw.complete) reply.header('connection', 'close')
      throw error
    } finally {
      under_way--
    }
  }

  // A scope of its own: its parser, which leaves every body where it is, must not reach the operations.
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, done) => done(null))
    scope.put('/objects/:key', put)
  })
}

function grantOf(ctx: Context, request: FastifyRequest): PutGrant {
  const { method = '', url = '', headers } = request.raw
  return verifyPut(ctx.keys, { method, url, headers }, ctx.now())
}

async function receive(ctx: Context, grant: PutGrant, { raw }: FastifyRequest): Promise<void> {
  const giveUp = (): void => void raw.destroy(new Error('The sender is silent.'))
  raw.socket.setTimeout(SILENCE_MS_MAX, giveUp)
  try {
    await storeObject(ctx, grant, raw)
  } catch (error) {
    // That a sender goes away is not our fault, and nothing for the log.
    if (error === raw.errored) throw new ApiError('UPLOAD_INVALID', { reason: 'broken_off' })
    throw error
  } finally {
    raw.socket.removeListener('timeout', giveUp)
    raw.socket.setTimeout(0)
  }
}
