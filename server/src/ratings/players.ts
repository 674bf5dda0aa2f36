// The players of a lobby that a call of its server names, by id or by player token. The projection writes players about once a
// second, so a call waits for one who has just got the seat.
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, validationError } from '@musterhost/contract'
import type { Context } from '../context.ts'
import type { CallerOf } from '../tokens/caller.ts'

/** How long a call waits for a player whose seat is not projected yet. */
const PROJECTION_MS_MAX = 5_000
const POLL_MS = 100
/** A player with an older id is projected, or has never been in this lobby. */
const NEW_PLAYER_MS = 30_000
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

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

/** The players in the same order. Throws RATING_PLAYER_NOT_FOUND for one who has never had a seat in the lobby. */
export async function seatedPlayers(
  ctx: Context,
  { lobby_id }: CallerOf<'lobby'>,
  players: readonly NamedPlayer[],
): Promise<SeatedPlayer[]> {
  const deadline_ms = ctx.elapsed() + PROJECTION_MS_MAX
  for (;;) {
    const identities = await readIdentities(ctx, lobby_id, players)
    const missing = players.filter(({ player_id }) => !identities.has(player_id))
    const [first] = missing
    if (first === undefined) {
      return players.map((player) => ({ ...player, identity_id: identities.get(player.player_id) ?? null }))
    }
    const may_come = missing.every(({ player_id }) => ctx.now() - createTime(player_id) < NEW_PLAYER_MS)
    if (!may_come || ctx.elapsed() >= deadline_ms) {
      const { player_id, path } = first
      const message = `${path.join('.')}: the player ${player_id} has never had a seat in this lobby.`
      throw new ApiError('RATING_PLAYER_NOT_FOUND', { path, player_id }, { message })
    }
    await sleep(POLL_MS)
  }
}

async function readIdentities(
  { db }: Context,
  lobby_id: string,
  players: readonly NamedPlayer[],
): Promise<Map<string, string | null>> {
  const rows = await db
    .selectFrom('players')
    .select(['player_id', 'identity_id'])
    .where('lobby_id', '=', lobby_id)
    .where(
      'player_id',
      'in',
      players.map(({ player_id }) => player_id),
    )
    .execute()
  return new Map(rows.map(({ player_id, identity_id }) => [player_id, identity_id]))
}

/** A UUIDv7 begins with its time, in milliseconds since the epoch. */
function createTime(id: string): number {
  return Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
}
