// The responses to a development token: as if one lobby ran where the token says, on the developer's machine. Nothing here
// reads a book: no seat is taken, no lobby is started and no limit is counted.
import { isIPv6 } from 'node:net'
import {
  ApiError,
  type BodyOf,
  type findLobby,
  type getPlayerStatistics,
  type joinLobby,
  type listLobbies,
  type listRegions,
  type QueryOf,
  type ResponseOf,
} from '@musterhost/contract'
import { newId } from '../../ids.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import type { MatchmakerContext } from '../seats/context.ts'
import { requireNoBackendMembers, type SeatCall } from '../seats/requester.ts'
import { gameModeNames } from './game-mode-names.ts'

type Developer = CallerOf<'development'>
type Seat = ResponseOf<typeof findLobby>

const LOBBY_ID = '00000000-0000-0000-0000-000000000000'
/** Stands for the code of a lobby that is created with one. A join takes any code. */
const CODE = 'BCDFGH'
const REGION = { region_id: 'dev-lcl', display_name: 'Local' }
const REGION_INFO = {
  region_id: REGION.region_id,
  provider_display_name: 'Development',
  region_display_name: REGION.display_name,
  datacenter_coord: { latitude: 0, longitude: 0 },
  datacenter_distance_from_client: { kilometers: 0, miles: 0 },
}
const PLAYER_TOKEN_LIFETIME_MS = 365 * 24 * 60 * 60_000
/** The state of the listed lobby. */
const STATE = { foo: 'bar' }

/** The response to find, join and create. Throws NAMESPACE_NOT_FOUND when the token's namespace was deleted. */
export async function developmentSeat(
  ctx: MatchmakerContext,
  developer: Developer,
  body: SeatCall['body'] & Pick<BodyOf<typeof joinLobby>, 'role'>,
): Promise<Seat> {
  requireNoBackendMembers(body)
  const { namespace_id } = await ctx.namespaces.get(developer.namespace_id)
  const now_ms = ctx.now()
  const role = body.role === 'spectator' ? { role: body.role } : {}
  const subject = { kind: 'dev_player', namespace_id, player_id: newId(now_ms), ...role } as const
  const player = { token: ctx.keys.issue(subject, { now_ms, lifetime_ms: PLAYER_TOKEN_LIFETIME_MS }), ...role }
  const ports = portsOf(developer)
  const code = 'with_code' in body && body.with_code === true ? { code: CODE } : {}
  return { lobby: { lobby_id: LOBBY_ID, ...code, region: REGION, ports, player }, ports, player }
}

/** The response to ready, closed, and reading or writing the state. */
export async function developmentNothing(ctx: MatchmakerContext, developer: Developer): Promise<Record<string, never>> {
  await ctx.namespaces.get(developer.namespace_id)
  return {}
}

/** No seat of a development lobby is remembered. */
export async function developmentOwnSeats(ctx: MatchmakerContext, developer: Developer): Promise<{ seats: never[] }> {
  await ctx.namespaces.get(developer.namespace_id)
  return { seats: [] }
}

/** The game modes of the namespace, each with one lobby. */
export async function developmentList(
  ctx: MatchmakerContext,
  developer: Developer,
  query: QueryOf<typeof listLobbies>,
): Promise<ResponseOf<typeof listLobbies>> {
  const { game_id, game_modes } = await ctx.namespaces.get(developer.namespace_id)
  return {
    game_modes: [...game_modes.keys()].map((name) => gameModeNames(game_id, name)),
    regions: [REGION_INFO],
    lobbies: [...game_modes.values()].map((mode) => ({
      region_id: REGION.region_id,
      ...gameModeNames(game_id, mode.name),
      lobby_id: LOBBY_ID,
      max_players_normal: mode.max_players_normal,
      max_players_direct: mode.max_players_direct,
      max_players_party: mode.max_players_party,
      total_player_count: 0,
      ...(query.include_state === true ? { state: STATE } : {}),
    })),
  }
}

export async function developmentRegions(
  ctx: MatchmakerContext,
  developer: Developer,
): Promise<ResponseOf<typeof listRegions>> {
  await ctx.namespaces.get(developer.namespace_id)
  return { regions: [{ ...REGION_INFO, ping_addresses: [] }] }
}

/** No players, in each game mode of the namespace. */
export async function developmentStatistics(
  ctx: MatchmakerContext,
  developer: Developer,
): Promise<ResponseOf<typeof getPlayerStatistics>> {
  const { game_modes } = await ctx.namespaces.get(developer.namespace_id)
  const empty = { player_count: 0, regions: { [REGION.region_id]: { player_count: 0 } } }
  return { player_count: 0, game_modes: Object.fromEntries([...game_modes.keys()].map((name) => [name, empty])) }
}

/**
 * The response to connected, and the check of disconnected. Throws PLAYER_TOKEN_INVALID for all but a development player's
 * token.
 */
export async function developmentPlayer(
  ctx: MatchmakerContext,
  developer: Developer,
  player_token: string,
): Promise<{ role?: 'spectator' }> {
  await ctx.namespaces.get(developer.namespace_id)
  try {
    const token = ctx.keys.verify(player_token, ctx.now())
    if (token.kind === 'dev_player' && token.namespace_id === developer.namespace_id) {
      return token.role === 'spectator' ? { role: token.role } : {}
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
  }
  throw new ApiError('PLAYER_TOKEN_INVALID')
}

function portsOf({ hostname, ports }: Developer): Seat['ports'] {
  const address = isIPv6(hostname) ? `[${hostname}]` : hostname
  return Object.fromEntries(
    ports.map(({ name, protocol, port, port_range }): [string, Seat['ports'][string]] => {
      const is_tls = protocol === 'https' || protocol === 'tcp_tls'
      const scheme = protocol === 'tcp_tls' ? 'tls' : protocol
      if (port !== null) {
        return [name, { host: `${address}:${port}`, hostname, port, is_tls, url: `${scheme}://${address}:${port}` }]
      }
      const range = port_range ?? { min: 0, max: 0 }
      return [name, { hostname, port_range: range, is_tls, url: `${scheme}://${address}:${range.min}` }]
    }),
  )
}
