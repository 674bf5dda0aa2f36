// Security headers of every response of the api role, whose origin holds people's sessions. No page may frame it, keep a
// handle of its window, or embed its responses. Addresses with secrets are not sent as a referrer. A page may set stricter
// headers of its own.
import type { FastifyInstance } from 'fastify'

const POLICY = {
  'content-security-policy': "frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const

export function addSecurityHeaders(app: FastifyInstance): void {
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(POLICY)
    done()
  })
}
