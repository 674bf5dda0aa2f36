// Who asks for a seat: a player's client, or the game's backend on behalf of a player. Everything after this file (limits,
// regions, verification) is about the player, and does not depend on who calls.
import {
  ApiError,
  type BodyOf,
  type ErrorDetail,
  type findLobby,
  type SeatAction,
  validationError,
} from '@musterhost/contract'
import { canonicalAddress, clientKey } from '../../addresses/client-ip.ts'
import type { Ray } from '../../observe/ray.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import type { Namespaces } from '../watch/namespaces.ts'
import type { RolloutVersion } from './rollout-finds.ts'

export type Requester = {
  namespace_id: string
  /** The player's identity; null: the request has no identity token. */
  identity_id: string | null
  /** The game's backend calls, with a cloud token. It vouches for its players: no captcha and no identity is required. */
  is_backend: boolean
  /** The player's address, in canonical form. */
  client_ip: string
  /** What limits per client count by: an IPv4 address or an IPv6 /64. */
  client_key: string
  user_agent: string | null
  idempotency_key: string | null
  ray_id: string
  /** Measures where the time of the request goes; null: rays are switched off. */
  ray: Ray | null
  /** For which version of the roll-out under way the find is; absent: none is under way, or it is no find. */
  rollout?: RolloutVersion
  /** True once the caller has hung up. */
  isGone: () => boolean
  /** Aborted when isGone() becomes true. */
  hangUpSignal: () => AbortSignal
}

/** A call for a seat, as the HTTP server received it. */
export type SeatCall<Body extends BackendMembers = BackendMembers> = {
  caller: CallerOf<'namespace' | 'cloud'>
  body: Body
  /** Address of the caller, which may be a backend. */
  client_ip: string
  client_key: string
  /** Steps of the call that were done already (steps.ts). Changed as the call goes on. */
  steps: Record<string, unknown>
} & Omit<Requester, 'namespace_id' | 'identity_id' | 'is_backend' | 'client_ip' | 'client_key'>

/** The members of a body that only a backend sends. */
type BackendMembers = Pick<BodyOf<typeof findLobby>, 'namespace_id' | 'clients'>

const BACKEND_MEMBERS = ['namespace_id', 'clients'] as const

/**
 * Throws VALIDATION_ERROR when `namespace_id` or `clients` is missing from a backend's body or present in a player's;
 * NAMESPACE_NOT_FOUND when the backend's namespace does not exist or belongs to another game.
 */
export async function requesterOf(namespaces: Namespaces, call: SeatCall): Promise<Requester> {
  const { caller, body, idempotency_key, ray_id, ray, isGone, hangUpSignal } = call
  const of_call = { idempotency_key, ray_id, ray, isGone, hangUpSignal }
  if (caller.kind === 'cloud') {
    const player = await playerOfBackend(namespaces, caller, body)
    return { ...player, identity_id: null, is_backend: true, ...of_call }
  }
  requireNoBackendMembers(body)
  const { namespace_id, identity_id } = caller
  const { client_ip, client_key, user_agent } = call
  return { namespace_id, identity_id, is_backend: false, client_ip, client_key, user_agent, ...of_call }
}

/** A player's address is the one that the call came from: the body must not claim another. */
export function requireNoBackendMembers(body: BackendMembers): void {
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

/** `path`: of an address that is none. */
export function addressFault(path: string[]): ErrorDetail {
  const message = `${path.join('.')} must be an IPv4 or IPv6 address, without a port or a zone.`
  return { path, reason: 'invalid', message }
}

async function playerOfBackend(
  namespaces: Namespaces,
  caller: CallerOf<'cloud'>,
  { namespace_id, clients }: BackendMembers,
): Promise<Pick<Requester, 'namespace_id' | 'client_ip' | 'client_key' | 'user_agent'>> {
  const [player] = clients ?? []
  if (namespace_id === undefined || player === undefined) {
    const missing = [namespace_id === undefined ? ['namespace_id'] : [], player === undefined ? ['clients'] : []].flat()
    throw validationError(
      missing.map((name) => ({
        path: [name],
        reason: 'required',
        message: `With a cloud token ${name} is required.`,
      })),
    )
  }
  const client_ip = canonicalAddress(player.address)
  if (client_ip === null) {
    throw validationError([addressFault(['clients', '0', 'address'])])
  }
  const { game_id } = await namespaces.get(namespace_id)
  if (game_id !== caller.game_id) throw new ApiError('NAMESPACE_NOT_FOUND')
  const { user_agent = null } = player
  return { namespace_id, client_ip, client_key: clientKey(client_ip), user_agent }
}

/**
 * The idempotency key belongs to one action of one client, identity or backend: no other requester gets the seat with it.
 * Null: the request has none.
 */
export function seatKeyOf(requester: Requester, action: SeatAction, with_party: boolean): string | null {
  const { idempotency_key } = requester
  return idempotency_key === null ? null : `${action} ${ownerOf(requester, with_party)} ${idempotency_key}`
}

function ownerOf({ client_key, identity_id, is_backend }: Requester, with_party: boolean): string {
  if (identity_id !== null) return `${with_party ? 'party' : 'identity'} ${identity_id}`
  return is_backend ? `backend ${client_key}` : client_key
}
