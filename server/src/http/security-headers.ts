// What browsers are told with every answer of the api role, whose origin holds people's sessions: nobody frames it, nobody
// who opened it keeps a hold of its window, nobody takes its answers as a part of another page, and addresses with secrets
// in them stay here. A page may set stricter headers of its own.
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
