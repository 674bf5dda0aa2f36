// CORS (Fetch standard, 3.2). Calls of players' pages carry a bearer token and never a cookie, so any page may read their
// responses: a developer's own page with a development token, or a portal with a public token. All other responses are
// readable by the hub's origin alone.
import type { FastifyInstance, FastifyReply } from 'fastify'
import { mainUrl } from '../config/addresses.ts'
import type { Context } from '../context.ts'

const PREFLIGHT_AGE_S = 3600
/** No browser sends any of these on its own. */
const PLAYER_PATHS = /^\/(?:matchmaker|v1|identity|parties|kv)(?:[/?]|$)/

/** For the routes of `app`; `paths`: the paths that answer a preflight request. */
export function allowOrigins(app: FastifyInstance, ctx: Context, paths: readonly string[]): void {
  const hub = mainUrl(ctx.config)
  // Not an async function: most requests of the hot path have no Origin, and would pay for the promise.
  app.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers
    if (origin !== undefined) {
      const is_open = PLAYER_PATHS.test(request.url)
      if (!is_open) reply.header('vary', 'Origin')
      if (is_open || origin === hub) {
        reply.header('access-control-allow-origin', is_open ? '*' : hub)
        reply.header('access-control-expose-headers', 'x-ray-id, retry-after')
      }
    }
    done()
  })
  for (const path of paths) app.options(path, (_request, reply) => answerPreflight(reply))
}

function answerPreflight(reply: FastifyReply): FastifyReply {
  return reply
    .header('access-control-allow-methods', 'GET, POST, PUT, DELETE')
    .header('access-control-allow-headers', 'authorization, content-type, idempotency-key')
    .header('access-control-max-age', String(PREFLIGHT_AGE_S))
    .code(204)
    .send()
}
