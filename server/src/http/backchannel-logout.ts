// POST /auth/backchannel-logout/{name}: a provider of sign-ins reports that a person signed out there. It is not an operation of
// the contract: OpenID Connect says its form, its responses, and that a signed token is the only credential.
import { ApiError } from '@musterhost/contract'
import type { FastifyInstance } from 'fastify'
import { clientKey } from '../addresses/client-ip.ts'
import type { LoadSignInWork } from '../identity/providers/open.ts'
import { BACKCHANNEL_PATH } from '../identity/providers/rows.ts'
import { addressOf } from './admission.ts'
import type { MountOptions } from './mount-options.ts'

const FORM = 'application/x-www-form-urlencoded'
const BODY_BYTES_MAX = 32 * 1024
const NAME = /^[a-z0-9-]{1,32}$/

export function registerBackchannelLogout(
  app: FastifyInstance,
  options: MountOptions,
  loadSignInWork: LoadSignInWork,
): void {
  const { ctx } = options
  app.register(async (scope) => {
    scope.addContentTypeParser(FORM, { parseAs: 'string', bodyLimit: BODY_BYTES_MAX }, (_request, body, done) => {
      done(null, new URLSearchParams(body as string))
    })
    scope.post<{ Params: { name: string } }>(`${BACKCHANNEL_PATH}/:name`, async (request, reply) => {
      const client_ip = addressOf(options, request.raw)
      const wait_ms = options.limiters.cloud.take(clientKey(client_ip), ctx.elapsed())
      if (wait_ms > 0) throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: Math.ceil(wait_ms / 1_000) })
      reply.header('cache-control', 'no-store')
      const { name } = request.params
      const logout_token = request.body instanceof URLSearchParams ? request.body.get('logout_token') : null
      if (logout_token === null || !NAME.test(name))
        return reply.code(400).send(refusal('The form has no logout_token.'))
      try {
        const { logOut } = await loadSignInWork()
        await logOut(ctx, { name, logout_token, client_ip })
        return reply.code(200).send()
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        ctx.log.info({ provider: name, code: error.code, reason: error.message }, 'a logout token was refused')
        return reply.code(400).send(refusal(error.message))
      }
    })
  })
}

/** As OpenID Connect Back-Channel Logout says. */
function refusal(error_description: string): { error: string; error_description: string } {
  return { error: 'invalid_request', error_description }
}
