// CORS (Fetch standard, 3.2) of what pages of games call: exactly the origins that stand for a namespace, and the hub's.
import type { FastifyInstance, FastifyReply } from 'fastify'
import { mainUrl } from '../config.ts'
import type { Context } from '../context.ts'
import type { OriginLookup } from './auth.ts'

const PREFLIGHT_AGE_S = 3600

/** For the routes of `app`, whose addresses are all below `paths`. */
export function allowOrigins(
  app: FastifyInstance,
  ctx: Context,
  namespaceOfOrigin: OriginLookup,
  paths: '/*' | '/kv/*' = '/*',
): void {
  const hub = mainUrl(ctx.config)
  // Not an async function: most requests of the hot path have no Origin, and would pay for the promise.
  app.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers
    if (origin === undefined) {
      done()
      return
    }
    reply.header('vary', 'Origin')
    const allow = (namespace_id: string | null): void => {
      if (origin !== hub && namespace_id === null) return
      reply.header('access-control-allow-origin', origin)
      reply.header('access-control-expose-headers', 'x-ray-id, retry-after')
    }
    const namespace_id = namespaceOfOrigin(origin)
    if (namespace_id instanceof Promise) {
      namespace_id.then(allow).then(() => done(), done)
      return
    }
    allow(namespace_id)
    done()
  })
  app.options(paths, (_request, reply) => answerPreflight(reply))
}

function answerPreflight(reply: FastifyReply): FastifyReply {
  return reply
    .header('access-control-allow-methods', 'GET, POST, PUT, DELETE')
    .header('access-control-allow-headers', 'authorization, content-type, idempotency-key')
    .header('access-control-max-age', String(PREFLIGHT_AGE_S))
    .code(204)
    .send()
}
