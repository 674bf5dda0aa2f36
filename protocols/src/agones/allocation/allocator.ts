// Allocates for clients of Agones with the calls of this platform.
import { ApiError, allocateLobby, type ErrorCode, getGameById } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { CallError } from '../call-error.ts'
import type { Allocate } from './endpoint.ts'
import { allocatedAs, askedBy } from './mapping.ts'

/** How long the names of namespaces are used before they are read again. */
const NAMES_MS = 60_000
const BEARER = /^Bearer (\S{1,4096})$/i

type GrpcName = ConstructorParameters<typeof CallError>[0]
const NAMES: Partial<Record<ErrorCode, GrpcName>> = {
  NAMESPACE_NOT_FOUND: 'NOT_FOUND',
  MATCHMAKER_GAME_MODE_NOT_FOUND: 'NOT_FOUND',
  MATCHMAKER_REGION_NOT_FOUND: 'NOT_FOUND',
  MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE: 'NOT_FOUND',
  MATCHMAKER_TOO_MANY_LOBBIES: 'RESOURCE_EXHAUSTED',
  MATCHMAKER_REGION_FULL: 'RESOURCE_EXHAUSTED',
  MATCHMAKER_NO_PORTS: 'RESOURCE_EXHAUSTED',
  MATCHMAKER_LOBBY_NOT_STARTED: 'UNAVAILABLE',
  MATCHMAKER_LOBBY_STOPPED: 'UNAVAILABLE',
  VALIDATION_ERROR: 'INVALID_ARGUMENT',
  API_NOT_AVAILABLE: 'UNAVAILABLE',
  API_RATE_LIMIT: 'UNAVAILABLE',
}

/**
 * `clientOf`: a client of the platform with this token. `token` null: each request must have a cloud token; otherwise requests
 * without one use it. `namespace`, `game_mode`: for requests that name none.
 */
export type AllocatorOptions = {
  game_id: string
  namespace: string
  game_mode: string
  token: string | null
  clientOf: (token: string) => Client
  /** Milliseconds; never runs back. */
  elapsed: () => number
}

export function createAllocator(options: AllocatorOptions): Allocate {
  const { clientOf, game_mode } = options
  let names: { ms: number; ids: Map<string, string> } | null = null

  const namespaceId = async (client: Client, name: string): Promise<string> => {
    const is_fresh = names !== null && options.elapsed() - names.ms < NAMES_MS
    const known = is_fresh ? names!.ids.get(name) : undefined
    if (known !== undefined) return known
    const { game } = await client.call(getGameById, { params: { game_id: options.game_id } })
    const pairs = game.namespaces.flatMap(({ name_id, namespace_id }): [string, string][] => [
      [name_id, namespace_id],
      [namespace_id, namespace_id],
    ])
    names = { ms: options.elapsed(), ids: new Map(pairs) }
    const found = names.ids.get(name)
    if (found === undefined) throw new CallError('NOT_FOUND', `the game has no namespace ${name.slice(0, 64)}`)
    return found
  }

  return async ({ request, authorization, signal }) => {
    const asked = askedBy(request, game_mode)
    const token = BEARER.exec(authorization ?? '')?.[1] ?? options.token
    if (token === null) throw new CallError('UNAUTHENTICATED', 'send a cloud token: authorization: Bearer TOKEN')
    const client = clientOf(token)
    try {
      const namespace_id = await namespaceId(client, asked.namespace ?? options.namespace)
      const answer = await client.call(allocateLobby, { body: { ...asked.body, namespace_id }, signal })
      return allocatedAs(answer, asked)
    } catch (error) {
      throw signal.aborted ? new CallError('UNAVAILABLE', 'the client has gone') : refusalOf(error)
    }
  }
}

function refusalOf(error: unknown): unknown {
  if (error instanceof TypeError) return new CallError('UNAVAILABLE', 'the platform does not respond')
  if (!(error instanceof ApiError)) return error
  const name = NAMES[error.code] ?? nameOfStatus(error.status)
  const text = `${error.code}: ${error.message}`
  return new CallError(
    name,
    name === 'RESOURCE_EXHAUSTED' ? `there is no available GameServer to allocate: ${text}` : text,
  )
}

function nameOfStatus(status: number): GrpcName {
  if (status === 401) return 'UNAUTHENTICATED'
  if (status === 403) return 'PERMISSION_DENIED'
  if (status === 404) return 'NOT_FOUND'
  return status >= 500 ? 'UNAVAILABLE' : 'FAILED_PRECONDITION'
}
