// Which clients have a seat in a lobby, cached for a moment. A UDP source whose client took a seat over HTTP is a player. Each
// lobby is read once for all its sources, and at most once in SEATS_AGE_MS.
import type { PlayerId } from '@musterhost/contract/edge'
import type { Context } from '../../context.ts'
import { BoundedMap } from '../../flow/bounded-map.ts'
import { ROUTES_MAX, SEATS_AGE_MS, SEATS_PER_ADDRESS_MAX, SEATS_READING_MAX } from '../limits.ts'

export type Seats = {
  /** Whether the client has a seat, as of the last read. Begins another read where the last one is old. */
  has: (lobby_id: string, client_key: string) => boolean
  /** Whether this player was removed from this lobby; false for an unknown player. Rejects while the database is down. */
  wasRemoved: (lobby_id: string, player_id: string) => Promise<boolean>
  /** The players of this client in the lobby, oldest first. Rejects while the database is down. */
  playersAt: (lobby_id: string, client_key: string) => Promise<PlayerId[]>
}

type LobbySeats = { client_keys: ReadonlySet<string>; read_ms: number }

export function createSeats(ctx: Context): Seats {
  const lobbies = new BoundedMap<string, LobbySeats>(ROUTES_MAX)
  let reading = 0

  async function read(lobby_id: string, before: LobbySeats | undefined): Promise<void> {
    if (reading >= SEATS_READING_MAX) return
    reading++
    lobbies.set(lobby_id, { client_keys: before?.client_keys ?? new Set(), read_ms: ctx.elapsed() })
    try {
      const rows = await ctx.db
        .selectFrom('players')
        .select('client')
        .distinct()
        .where('lobby_id', '=', lobby_id)
        .where('remove_ts', 'is', null)
        .execute()
      lobbies.set(lobby_id, { client_keys: new Set(rows.map(({ client }) => client)), read_ms: ctx.elapsed() })
    } catch (error) {
      ctx.log.warn({ err: error }, 'the seats of a lobby cannot be read; retrying')
    } finally {
      reading--
    }
  }

  return {
    has(lobby_id, client_key) {
      const seats = lobbies.get(lobby_id)
      if (seats?.client_keys.has(client_key)) return true
      if (seats === undefined || ctx.elapsed() - seats.read_ms >= SEATS_AGE_MS) void read(lobby_id, seats)
      return false
    },
    playersAt: (lobby_id, client_key) =>
      ctx.db
        .selectFrom('players')
        .select(['player_id', 'lobby_id', 'namespace_id', 'is_spectator'])
        .where('lobby_id', '=', lobby_id)
        .where('client', '=', client_key)
        .where('remove_ts', 'is', null)
        .orderBy('create_ts')
        .limit(SEATS_PER_ADDRESS_MAX)
        .execute(),
    async wasRemoved(lobby_id, player_id) {
      const row = await ctx.db
        .selectFrom('players')
        .select('remove_ts')
        .where('player_id', '=', player_id)
        .where('lobby_id', '=', lobby_id)
        .executeTakeFirst()
      return row !== undefined && row.remove_ts !== null
    },
  }
}
