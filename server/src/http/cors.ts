// CORS (Fetch standard, 3.2) of the matchmaker: exactly the origins that stand for a namespace, and the hub's.
import type { FastifyInstance, FastifyReply } from 'fastify'
import { mainUrl } from '../config.ts'
import type { Context } from '../context.ts'
import type { OriginLookup } from './auth.ts'

const PREFLIGHT_AGE_S = 3600

export function allowOrigins(app: FastifyInstance, ctx: Context, namespaceOfOrigin: OriginLookup): void {
  const hub = mainUrl(ctx.config)
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers
    if (origin === undefined) return
    reply.header('vary', 'Origin')
    if (origin !== hub && (await namespaceOfOrigin(origin)) === null) return
    reply.header('access-control-allow-origin', origin)
    reply.header('access-control-expose-headers', 'x-ray-id, retry-after')
  })
  app.options('/*', (_request, reply) => answerPreflight(reply))
}

function answerPreflight(reply: FastifyReply): FastifyReply {
  return reply
    .header('access-control-allow-methods', 'GET, POST, PUT, DELETE')
    .header('access-control-allow-headers', 'authorization, content-type, idempotency-key')
    .header('access-control-max-age', String(PREFLIGHT_AGE_S))
    .code(204)
    .send()
}
