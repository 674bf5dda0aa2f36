// Who asks for a seat: a player's own client, or his game's backend that speaks for him. Made of what the HTTP door saw and
// of what the body says; everything behind it (limits, regions, verification) is about the player, not about who calls.
import { ApiError, type BodyOf, type findLobby, validationError } from '@muster/contract'
import { canonicalAddress, clientKey } from '../../addresses/client-ip.ts'
import type { Caller, CallerOf } from '../../caller.ts'
import type { Ray } from '../../observe/ray.ts'
import type { DecisionLog } from '../explanations/decision-log.ts'
import type { Namespaces } from '../watch/namespaces.ts'

export type Requester = {
  namespace_id: string
  /** Who plays, where he has said so with his identity's token. */
  identity_id: string | null
  /** The game's own backend asks, with a cloud token: it answers for its players, so that none is asked for a captcha. */
  is_backend: boolean
  /** The player's own, in canonical form: what is known of it is factsOf() of the desk. */
  address: string
  /** What limits per client count by. */
  client: string
  user_agent: string | null
  idempotency_key: string | null
  /** What is noted of the request, to explain how it ended; null: nothing is. */
  tale: DecisionLog | null
  ray_id: string
  /** Where the time of the request goes; null: nobody keeps it. */
  ray: Ray | null
  /** True once nobody waits for the answer any more. */
  isGone: () => boolean
  /** Aborted in the moment in which isGone() becomes true. */
  hangUpSignal: () => AbortSignal
}

/** A request for a seat, as the HTTP door saw it. */
export type SeatRequest = Omit<Requester, 'namespace_id' | 'identity_id' | 'is_backend' | 'tale'> & {
  caller: Caller
  body: BackendWords
}
/** What only a backend says. */
type BackendWords = Pick<BodyOf<typeof findLobby>, 'namespace_id' | 'clients'>

const BACKEND_MEMBERS = ['namespace_id', 'clients'] as const

/**
 * Throws VALIDATION_ERROR when `namespace_id` and `clients` are missing from a backend's body, or are in any other; and
 * NAMESPACE_NOT_FOUND when there is no such namespace, or it is another game's.
 */
export async function requesterOf(namespaces: Namespaces, request: SeatRequest): Promise<Requester> {
  const { caller, body, address, client, user_agent, idempotency_key, isGone, hangUpSignal, ray_id, ray } = request
  if (caller.kind === 'cloud') {
    const player = await playerOfBackend(namespaces, caller, body)
    return {
      ...player,
      identity_id: null,
      is_backend: true,
      idempotency_key,
      isGone,
      hangUpSignal,
      tale: null,
      ray_id,
      ray,
    }
  }
  requireNoBackend(body)
  if (caller.kind !== 'namespace') throw new ApiError('API_FORBIDDEN')
  const { namespace_id, identity_id } = caller
  return {
    namespace_id,
    identity_id,
    is_backend: false,
    address,
    client,
    user_agent,
    idempotency_key,
    isGone,
    hangUpSignal,
    tale: null,
    ray_id,
    ray,
  }
}

/** A player must not say who he is: his address is the one that he has. */
export function requireNoBackend(body: BackendWords): void {
  const present = BACKEND_MEMBERS.filter((name) => body[name] !== undefined)
  if (present.length === 0) return
  throw validationError(
    present.map((name) => ({
      path: [name],
      reason: 'not_allowed',
      message: `${name} is for a game's backend, which calls with a cloud token.`,
    })),
  )
}

async function playerOfBackend(
  namespaces: Namespaces,
  caller: CallerOf<'cloud'>,
  { namespace_id, clients }: BackendWords,
): Promise<Pick<Requester, 'namespace_id' | 'address' | 'client' | 'user_agent'>> {
  const [player] = clients ?? []
  if (namespace_id === undefined || player === undefined) {
    const missing = [namespace_id === undefined ? ['namespace_id'] : [], player === undefined ? ['clients'] : []].flat()
    throw validationError(
      missing.map((name) => ({
        path: [name],
        reason: 'required',
        message: `With a cloud token ${name} must be said.`,
      })),
    )
  }
  const address = canonicalAddress(player.address)
  if (address === null) {
    const message = 'clients.0.address must be an IPv4 or IPv6 address, without a port or a zone.'
    throw validationError([{ path: ['clients', '0', 'address'], reason: 'invalid', message }])
  }
  const { game_id } = await namespaces.get(namespace_id)
  if (game_id !== caller.game_id) throw new ApiError('NAMESPACE_NOT_FOUND')
  const { user_agent = null } = player
  return { namespace_id, address, client: clientKey(address), user_agent }
}
