// The players of a lobby that a call of its server names, by id or by player token. Every seat is in the journal before its
// player knows of it. The projection writes players about once a second, so a call that names an unknown player waits until
// the projection has read what the journal had at the time of the call.
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, validationError } from '@musterhost/contract'
import { sql } from 'kysely'
import type { Context } from '../context.ts'
import { ID_FORM } from '../ids.ts'
import type { CallerOf } from '../tokens/caller.ts'

/** How long a call waits for the projection. */
const PROJECTION_MS_MAX = 5_000
const POLL_MS = 100
const RETRY_AFTER_S = 1
const ID = new RegExp(`^${ID_FORM}$`)

/** `path`: of the member that names the player, for errors. */
export type NamedPlayer = { player_id: string; path: readonly string[] }
/** `identity_id`: null: the seat was requested without an identity token. */
export type SeatedPlayer = NamedPlayer & { identity_id: string | null }

/** Throws PLAYER_TOKEN_INVALID for what is neither an id nor a player token of this lobby. */
export function playerNamed(
  ctx: Context,
  { lobby_id }: CallerOf<'lobby'>,
  text: string,
  path: readonly string[],
): NamedPlayer {
  if (ID.test(text)) return { player_id: text, path }
  // At this time no token has expired: a match may last longer than a token is valid.
  const token = tokenOf(ctx, text)
  if (token?.kind === 'player' && token.lobby_id === lobby_id) return { player_id: token.player_id, path }
  const message = `${path.join('.')} is neither the id of a player nor a player token of this lobby.`
  throw new ApiError('PLAYER_TOKEN_INVALID', { path }, { message })
}

function tokenOf({ keys }: Context, text: string) {
  try {
    return keys.verify(text, 0)
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}

/** Throws VALIDATION_ERROR when a player is named twice. */
export function requireEachOnce(players: readonly NamedPlayer[]): void {
  const seen = new Map<string, readonly string[]>()
  for (const { player_id, path } of players) {
    const other = seen.get(player_id)
    seen.set(player_id, path)
    if (other === undefined) continue
    const message = `${path.join('.')} is the same player as ${other.join('.')}. Name each player once.`
    throw validationError([{ path: [...path], reason: 'duplicate', message }])
  }
}

/**
 * The players in the same order. Throws RATING_PLAYER_NOT_FOUND for a spectator and for one who has never had a seat in the
 * lobby, or API_NOT_AVAILABLE when the projection is late.
 */
export async function seatedPlayers(
  ctx: Context,
  { lobby_id }: CallerOf<'lobby'>,
  players: readonly NamedPlayer[],
): Promise<SeatedPlayer[]> {
  const deadline_ms = ctx.elapsed() + PROJECTION_MS_MAX
  let awaited_seq: number | null = null
  for (let is_projected = false; ; ) {
    const seats = await readSeats(ctx, lobby_id, players)
    const spectator = players.find(({ player_id }) => seats.get(player_id)?.is_spectator)
    if (spectator !== undefined) throw notFound(spectator, 'is a spectator of this lobby. Name only players.')
    const missing = players.find(({ player_id }) => !seats.has(player_id))
    if (missing === undefined) {
      return players.map((player) => ({ ...player, identity_id: seats.get(player.player_id)?.identity_id ?? null }))
    }
    if (is_projected) throw notFound(missing, 'has never had a seat in this lobby.')
    const { journal_seq, projected_seq } = await readProgress(ctx, lobby_id)
    awaited_seq ??= journal_seq
    is_projected = projected_seq >= awaited_seq
    if (is_projected) continue
    if (ctx.elapsed() >= deadline_ms) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
    await sleep(POLL_MS)
  }
}

function notFound({ player_id, path }: NamedPlayer, why: string): ApiError {
  const message = `${path.join('.')}: the player ${player_id} ${why}`
  return new ApiError('RATING_PLAYER_NOT_FOUND', { path, player_id }, { message })
}

/** The last row of the journal of the lobby's shard, and the last that is projected. */
async function readProgress(
  { db }: Context,
  lobby_id: string,
): Promise<{ journal_seq: number; projected_seq: number }> {
  const { rows } = await sql<{ journal_seq: number; projected_seq: number }>`
    select
      coalesce((select seq from journal where journal.shard = lobbies.shard order by seq desc limit 1), 0) as journal_seq,
      coalesce((select projected_seq from shards where shards.shard = lobbies.shard), 0) as projected_seq
    from lobbies where lobby_id = ${lobby_id}`.execute(db)
  // A lobby that is removed has no players either.
  return rows[0] ?? { journal_seq: 0, projected_seq: 0 }
}

async function readSeats(
  { db }: Context,
  lobby_id: string,
  players: readonly NamedPlayer[],
): Promise<Map<string, { identity_id: string | null; is_spectator: boolean }>> {
  const rows = await db
    .selectFrom('players')
    .select(['player_id', 'identity_id', 'is_spectator'])
    .where('lobby_id', '=', lobby_id)
    .where(
      'player_id',
      'in',
      players.map(({ player_id }) => player_id),
    )
    .execute()
  return new Map(rows.map(({ player_id, ...seat }) => [player_id, seat]))
}
