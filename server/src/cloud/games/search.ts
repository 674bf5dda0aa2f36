// Search in a game: players, lobbies and rays by an id, and players by their identity or the address of a client, over all namespaces. Each
// query reads a limited number of rows by an index.
import {
  FORMATS,
  FOUND_MAX,
  type FoundLobby,
  type FoundPlayer,
  type ResponseOf,
  type searchGame,
  validationError,
} from '@musterhost/contract'
import { canonicalAddress, clientKey } from '../../addresses/client-ip.ts'
import type { Context } from '../../context.ts'
import { idOfName } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame } from '../access.ts'
import { cut } from '../lists.ts'
import { findRays, ownersOf } from '../rays/ray-list.ts'
import { timestamp } from '../times.ts'

type Answer = ResponseOf<typeof searchGame>

const PLAYER_COLUMNS =
  'player_id, lobby_id, namespace_id, client, identity_id, create_ts, connect_ts, remove_ts, remove_reason'
type PlayerRow = {
  player_id: string
  lobby_id: string
  namespace_id: string
  client: string
  identity_id: string | null
  create_ts: Date
  connect_ts: Date | null
  remove_ts: Date | null
  remove_reason: string | null
}
type LobbyRow = {
  lobby_id: string
  namespace_id: string
  game_mode: string
  region: string
  create_ts: Date
  stop_ts: Date | null
}

/** Throws GAME_NOT_FOUND, and VALIDATION_ERROR for a text that is neither an id nor an address. */
export async function search(ctx: Context, caller: Caller, game_id: string, text: string): Promise<Answer> {
  await requireGame(ctx, caller, game_id)
  const owner_ids = await ownersOf(ctx, game_id)
  const id = text.trim().toLowerCase()
  if (FORMATS.uuid!(id)) return searchId(ctx, owner_ids, id)
  const client = clientOf(id)
  if (client !== null) return listsOf(await playersOfClient(ctx, owner_ids, client), [], [])
  const message =
    'The text must be an id (UUID) of a player, an identity, a lobby or a ray, an IPv4 or IPv6 address, or an IPv6 /64.'
  throw validationError([{ path: ['text'], reason: 'invalid', message }])
}

async function searchId(ctx: Context, owner_ids: string[], id: string): Promise<Answer> {
  const known = [...(await startingRay(ctx, owner_ids, id)), ...(await playersOfIdentity(ctx, owner_ids, id))]
  const rays = await findRays(ctx, owner_ids, [id, ...known], FOUND_MAX + 1)
  const seated = rays.flatMap(({ ray_id, player_id }) => (ray_id === id && player_id !== undefined ? [player_id] : []))
  const { rows: players } = await ctx.pool.query<PlayerRow>(
    `select ${PLAYER_COLUMNS} from players
      where namespace_id = any($1) and (player_id = any($2) or lobby_id = $3 or identity_id = $3)
      order by create_ts desc, player_id desc limit ${FOUND_MAX + 1}`,
    [owner_ids, [id, ...seated], id],
  )
  const lobby_ids = new Set([id, ...players.map(({ lobby_id }) => lobby_id)])
  const { rows: lobbies } = await ctx.pool.query<LobbyRow>(
    `select lobby_id, namespace_id, game_mode, region, create_ts, stop_ts from lobbies
      where namespace_id = any($1) and (lobby_id = any($2) or ray_id = $3)
      order by create_ts desc, lobby_id desc limit ${FOUND_MAX + 1}`,
    [owner_ids, [...lobby_ids], id],
  )
  return listsOf(players, lobbies, rays)
}

/** Returns the ray of the request that started the lobby with this id, in a list of at most one. */
async function startingRay(ctx: Context, owner_ids: string[], lobby_id: string): Promise<string[]> {
  const { rows } = await ctx.pool.query<{ ray_id: string }>(
    'select ray_id from lobbies where lobby_id = $1 and namespace_id = any($2) and ray_id is not null',
    [lobby_id, owner_ids],
  )
  return rows.map(({ ray_id }) => ray_id)
}

/** The newest seats of the identity with this id. */
async function playersOfIdentity(ctx: Context, owner_ids: string[], identity_id: string): Promise<string[]> {
  const { rows } = await ctx.pool.query<{ player_id: string }>(
    `select player_id from players where identity_id = $1 and namespace_id = any($2)
      order by create_ts desc limit ${FOUND_MAX + 1}`,
    [identity_id, owner_ids],
  )
  return rows.map(({ player_id }) => player_id)
}

async function playersOfClient(ctx: Context, owner_ids: string[], client: string): Promise<PlayerRow[]> {
  const { rows } = await ctx.pool.query<PlayerRow>(
    `select found.* from unnest($1::uuid[]) as owner (id), lateral (
        select ${PLAYER_COLUMNS} from players where client = $2 and namespace_id = owner.id
        order by create_ts desc limit ${FOUND_MAX + 1}
      ) as found order by create_ts desc, player_id desc limit ${FOUND_MAX + 1}`,
    [owner_ids, client],
  )
  return rows
}

/** The client key of an address, or of a /64 that was written as one. Null: it is neither. */
function clientOf(text: string): string | null {
  const address = canonicalAddress(text.replace(/\/64$/, ''))
  return address === null || (text.endsWith('/64') && !address.includes(':')) ? null : clientKey(address)
}

function listsOf(players: PlayerRow[], lobbies: LobbyRow[], rays: Answer['rays']['items']): Answer {
  return {
    players: listOf(players.map(playerOf)),
    lobbies: listOf(lobbies.map(lobbyOf)),
    rays: listOf(rays),
  }
}

function listOf<T>(found: readonly T[]): { items: T[]; is_cut: boolean } {
  const { rows: items, is_cut } = cut(found, FOUND_MAX)
  return { items, is_cut }
}

function playerOf({
  client: client_key,
  identity_id,
  create_ts,
  connect_ts,
  remove_ts,
  remove_reason,
  ...ids
}: PlayerRow): FoundPlayer {
  return {
    ...ids,
    client_key,
    ...(identity_id === null ? {} : { identity_id }),
    create_ts: timestamp(create_ts),
    ...(connect_ts === null ? {} : { connect_ts: timestamp(connect_ts) }),
    ...(remove_ts === null ? {} : { remove_ts: timestamp(remove_ts) }),
    ...(remove_reason === null ? {} : { remove_reason }),
  }
}

function lobbyOf({ region, create_ts, stop_ts, ...lobby }: LobbyRow): FoundLobby {
  return {
    ...lobby,
    region_id: idOfName(region),
    create_ts: timestamp(create_ts),
    ...(stop_ts === null ? {} : { stop_ts: timestamp(stop_ts) }),
  }
}
