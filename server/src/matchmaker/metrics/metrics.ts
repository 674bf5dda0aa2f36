// The matchmaker's metrics and its health. Nothing is counted before the operator asks.
import type { Context } from '../../context.ts'
import type { Projection } from '../projection/projection.ts'
import type { Books } from '../shards/books.ts'
import type { ShardLeases } from '../shards/shard-leases.ts'
import { countLobbies, reportLobbies, reportPlayers } from './lobby-counts.ts'

const LABELS = ['namespace_id', 'region', 'game_mode', 'state'] as const

export type MatchmakerParts = {
  books: Books
  projection: Projection
  leases: Pick<ShardLeases, 'is_member'>
  /** Open connections to lobbies, as the edges report them. */
  connectionCount: () => number
}

/** Registers the metrics of the shards that this process has: their sums over all processes are the platform's. */
export function registerMetrics({ metrics, health }: Context, parts: MatchmakerParts): void {
  const { books, projection, leases } = parts
  metrics.gauge(
    'lobbies',
    'Lobbies: starting, ready, closed, or stalled (the server does not respond).',
    LABELS,
    async (set) => reportLobbies(await countLobbies(books), set),
  )
  metrics.gauge('players', 'Players: reserved (a seat, not connected yet) or connected.', LABELS, async (set) =>
    reportPlayers(await countLobbies(books), set),
  )
  metrics.gauge('lobby_connections', 'Open connections to lobbies, as the edges report them.', [], (set) =>
    set(parts.connectionCount()),
  )
  metrics.gauge('shards', 'Shards of the journal that this process has, by their state.', ['state'], (set) => {
    const states = books.shardStates()
    for (const state of ['writing', 'recovering', 'deposed', 'closed']) {
      set(states.filter((item) => item === state).length, state)
    }
  })
  metrics.gauge('projection_lag_seconds', 'How long the tables have been behind the journal.', [], (set) =>
    set(projection.lagMs() / 1_000),
  )
  health.needs('matchmaker', () => leases.is_member && books.shardStates().every((state) => state === 'writing'))
}
