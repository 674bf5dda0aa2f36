// Which clients have a seat in a lobby, for a moment in memory: a source whose client took a seat over HTTP is a player.
// Read once for all who ask about a lobby, and not more often than every SEATS_AGE_MS, whoever asks.
import type { Context } from '../../context.ts'
import { ROUTES_MAX, SEATS_AGE_MS, SEATS_READING_MAX } from '../limits.ts'

export type Seats = {
  /** As far as is known now; asks for more where that is old. */
  has: (lobby_id: string, client: string) => boolean
  /** Whether this player was taken out of this lobby. One that is not known yet was not. Rejects without the database. */
  wasRemoved: (lobby_id: string, player_id: string) => Promise<boolean>
}

type Known = { clients: ReadonlySet<string>; read_ms: number }

export function createSeats(ctx: Context): Seats {
  const lobbies = new Map<string, Known>()
  let reading = 0

  async function read(lobby_id: string, before: Known | undefined): Promise<void> {
    if (reading >= SEATS_READING_MAX) return
    reading++
    if (lobbies.size >= ROUTES_MAX) lobbies.delete(lobbies.keys().next().value!)
    lobbies.set(lobby_id, { clients: before?.clients ?? new Set(), read_ms: ctx.elapsed() })
    try {
      const rows = await ctx.db
        .selectFrom('players')
        .select('client')
        .distinct()
        .where('lobby_id', '=', lobby_id)
        .where('remove_ts', 'is', null)
        .execute()
      lobbies.set(lobby_id, { clients: new Set(rows.map(({ client }) => client)), read_ms: ctx.elapsed() })
    } catch (error) {
      ctx.log.warn({ err: error }, 'the seats of a lobby could not be read; trying again')
    } finally {
      reading--
    }
  }

  return {
    has(lobby_id, client) {
      const known = lobbies.get(lobby_id)
      if (known?.clients.has(client)) return true
      if (known === undefined || ctx.elapsed() - known.read_ms >= SEATS_AGE_MS) void read(lobby_id, known)
      return false
    },
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
