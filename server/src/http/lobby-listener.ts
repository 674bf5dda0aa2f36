// The listener behind PLATFORM_API_URL, the one address that a lobby receives. It serves every operation that a lobby token
// may call, and no other. It belongs to the matchmaker's process: `ready` and `connected`, for which players wait, go through
// no other process, and work while the api or the edge is restarted. The api's operations are forwarded.
import { ApiError, isForLobbies, type Operation } from '@musterhost/contract'
import { OPERATIONS } from '@musterhost/contract/operations'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createAdmission } from './admission.ts'
import { limitConnections } from './connection-limit.ts'
import type { Implementation } from './implement.ts'
import { mount, urlsOf } from './mount.ts'
import type { MountOptions } from './mount-options.ts'

/** A few connections for each of a thousand lobbies. The number of open descriptors limits them too. */
const LOBBY_CONNECTIONS_MAX = 8_192

/** Replies with what the api returns (peers/api-forwarder.ts). */
export type ForwardToApi = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/** `implementations`: those of the matchmaker. */
export function serveLobbies(
  app: FastifyInstance,
  options: MountOptions,
  implementations: readonly Implementation[],
  forwardToApi: ForwardToApi,
): void {
  limitConnections(app.server, LOBBY_CONNECTIONS_MAX)
  for (const implementation of implementations) {
    if (isForLobbies(implementation.operation)) mount(app, options, implementation)
  }
  app.register(async (scope) => {
    // The body stays in the request: the forwarder streams it.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, done) => done(null))
    for (const operation of OPERATIONS) {
      if (!isForLobbies(operation) || operation.service === 'matchmaker') continue
      const onRequest = createAdmission(options, operation)
      for (const url of urlsOf(operation)) {
        scope.route({
          method: operation.method,
          url,
          config: { operation: operation.id } as object,
          onRequest,
          handler: forwardToApi,
        })
      }
    }
  })
}

/** API_FORBIDDEN for an operation that the platform serves elsewhere, else API_NOT_FOUND. */
export function refuseToLobbies({ method, url }: FastifyRequest): ApiError {
  const [path = ''] = url.split('?', 1)
  const operation = OPERATIONS.find((one) => one.method === method && hasPath(one, path))
  if (operation === undefined) return new ApiError('API_NOT_FOUND')
  const message = `PLATFORM_API_URL serves the operations of lobby tokens; ${operation.id} is for ${operation.auth.join(' or ')}.`
  return new ApiError('API_FORBIDDEN', { caller: 'lobby', allowed: operation.auth }, { message })
}

function hasPath({ path, aliases }: Operation, asked: string): boolean {
  return [path, ...aliases].some((one) => {
    const [parts, asked_parts] = [one.split('/'), asked.split('/')]
    return (
      parts.length === asked_parts.length && parts.every((part, at) => part.startsWith('{') || part === asked_parts[at])
    )
  })
}
