// PUT /objects/<key>: receives the bytes of uploads. It is not an operation of the contract: a presigned address is the only
// credential, and the body is a stream of any type and length that is never held in memory. Limited are the senders at once,
// in all and of one group, and their least speed. The disk must have room.
import { ApiError } from '@musterhost/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { requireDisk } from '../cloud/uploads/disk.ts'
import { requireAwaited, storeObject } from '../cloud/uploads/uploads.ts'
import type { Context } from '../context.ts'
import { freeBuffer } from '../node/free-buffer.ts'
import { type PutGrant, verifyPut } from '../objects/presign.ts'

/** A sender that is silent for this long is cut off. */
const SILENCE_MS_MAX = 30_000
/** The interval over which the speed of a sender is measured. */
const PACE_MS = 5_000
/** Bodies that arrive at the same time in one process. */
const PUTS_AT_ONCE_MAX = 256

/** A body that is arriving. */
type Arrival = { group_id: string; missingBytes: () => number }

export function registerObjectRoutes(app: FastifyInstance, ctx: Context): void {
  const arrivals = new Set<Arrival>()
  let under_way = 0

  async function put(request: FastifyRequest, reply: FastifyReply): Promise<object> {
    under_way++
    try {
      if (under_way > PUTS_AT_ONCE_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
      const grant = grantOf(ctx, request)
      const { group_id } = await requireAwaited(ctx, grant)
      const arrival = { group_id, missingBytes: missingBytesOf(request, grant) }
      requireTurn(ctx, arrivals, group_id)
      arrivals.add(arrival)
      try {
        await requireDisk(
          ctx,
          0,
          arrivals.values().reduce((sum, item) => sum + item.missingBytes(), 0),
        )
        await receive(ctx, grant, request)
      } finally {
        arrivals.delete(arrival)
      }
      return {}
    } catch (error) {
      // The rest of the body is not read, so the connection cannot carry another request.
      if (!request.raw.complete) reply.header('connection', 'close')
      throw error
    } finally {
      under_way--
    }
  }

  // In a scope of its own: its parser leaves every body unread, which must not apply to the operations.
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

/** The part of a body that is still to be read. The head and the bytes that came with it have been read. */
function missingBytesOf({ raw }: FastifyRequest, { content_length }: PutGrant): () => number {
  const { socket } = raw
  const begun = socket.bytesRead
  return () => Math.max(0, content_length - (socket.bytesRead - begun))
}

function requireTurn(ctx: Context, arrivals: ReadonlySet<Arrival>, group_id: string): void {
  const { group_concurrency_max } = ctx.config.uploads
  const count = arrivals
    .values()
    .filter((item) => item.group_id === group_id)
    .toArray().length
  if (count < group_concurrency_max) return
  const message = `The group is uploading ${count} files already; send fewer at once.`
  throw new ApiError('API_RATE_LIMIT', { limit: group_concurrency_max, used: count }, { message, retry_after_s: 1 })
}

async function receive(ctx: Context, grant: PutGrant, { raw }: FastifyRequest): Promise<void> {
  const giveUp = (): void => void raw.destroy(new Error('The sender is silent.'))
  raw.socket.setTimeout(SILENCE_MS_MAX, giveUp)
  const pace = keepPace(raw, ctx.config.uploads.bytes_per_second_min)
  try {
    await storeObject(ctx, grant, passing(raw))
  } catch (error) {
    // A sender that hangs up is no error of the platform, and is not logged.
    if (error === raw.errored) throw new ApiError('UPLOAD_INVALID', { reason: 'broken_off' })
    throw error
  } finally {
    clearInterval(pace)
    raw.socket.removeListener('timeout', giveUp)
    raw.socket.setTimeout(0)
  }
}

/** The chunks of a body. A chunk is valid until the next one is requested. */
async function* passing(raw: FastifyRequest['raw']): AsyncGenerator<Uint8Array> {
  for await (const chunk of raw) {
    yield chunk
    freeBuffer(chunk)
  }
}

/** Cuts off a sender that is too slow over an interval: a thousand slow senders would hold a thousand places. */
function keepPace(raw: FastifyRequest['raw'], bytes_per_second_min: number): NodeJS.Timeout {
  let before = raw.socket.bytesRead
  return setInterval(() => {
    const received = raw.socket.bytesRead - before
    before += received
    // Bytes that have arrived and are not read wait for our disk, and a complete body waits for our database.
    if (raw.complete || raw.readableLength > 0 || received >= (bytes_per_second_min * PACE_MS) / 1_000) return
    raw.destroy(new Error('The sender is too slow.'))
  }, PACE_MS)
}
