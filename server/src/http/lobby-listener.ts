// What is served at PLATFORM_API_URL, the one address that a lobby is given: every operation that a lobby token may call,
// and no other. It is a listener of the matchmaker's process. `ready` and `connected`, for which players wait, go through no
// other process, and go on while the api or the edge is started again. The api's operations are forwarded to it.
import { ApiError, isForLobbies, type Operation } from '@muster/contract'
import { OPERATIONS } from '@muster/contract/operations'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ApiForwarder } from './api-forwarder.ts'
import { limitConnections } from './connection-limit.ts'
import { createAdmission, type Implementation, type MountOptions, mount, urlsOf } from './implement.ts'

/** Some connections for each of a thousand lobbies. The number of open descriptors bounds them too. */
const LOBBY_CONNECTIONS_MAX = 8_192

/** `implementations`: the matchmaker's own. */
export function serveLobbies(
  app: FastifyInstance,
  door: MountOptions,
  implementations: readonly Implementation[],
  forwarder: ApiForwarder,
): void {
  limitConnections(app.server, LOBBY_CONNECTIONS_MAX)
  for (const implementation of implementations) {
    if (isForLobbies(implementation.operation)) mount(app, door, implementation)
  }
  app.register(async (scope) => {
    // The body stays in the request: the forwarder sends it on as it comes.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, done) => done(null))
    for (const operation of OPERATIONS) {
      if (!isForLobbies(operation) || operation.service === 'matchmaker') continue
      const onRequest = createAdmission(door, operation)
      for (const url of urlsOf(operation)) {
        scope.route({
          method: operation.method,
          url,
          config: { operation: operation.id } as object,
          onRequest,
          handler: (request, reply) => forwarder.forward(request, reply),
        })
      }
    }
  })
}

/** API_FORBIDDEN where the platform has the operation elsewhere, else API_NOT_FOUND. */
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
