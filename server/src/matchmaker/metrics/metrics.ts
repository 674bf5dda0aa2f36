// The matchmaker's metrics and its health. Nothing is counted before the operator asks.
import type { Context } from '../../context.ts'
import type { Projection } from '../projection/projection.ts'
import type { Books } from '../shards/books.ts'
import type { EdgeReports } from '../watch/edge-reports.ts'
import { countLobbies, reportLobbies, reportPlayers } from './lobby-counts.ts'

const LABELS = ['namespace_id', 'region', 'game_mode', 'state'] as const

type Leadership = { books: Books; projection: Projection; edge_reports: EdgeReports }

/** `leadership`: null while another process leads. Then there is nothing to report, and this process is not ready. */
export function registerMetrics({ metrics, health }: Context, leadership: () => Leadership | null): void {
  metrics.gauge(
    'lobbies',
    'Lobbies: starting, ready, closed, or stalled (the server does not respond).',
    LABELS,
    async (set) => {
      const books = leadership()?.books
      if (books !== undefined) reportLobbies(await countLobbies(books), set)
    },
  )
  metrics.gauge('players', 'Players: reserved (a seat, not connected yet) or connected.', LABELS, async (set) => {
    const books = leadership()?.books
    if (books !== undefined) reportPlayers(await countLobbies(books), set)
  })
  metrics.gauge('lobby_connections', 'Open connections to lobbies, as the edges report them.', [], (set) =>
    set(leadership()?.edge_reports.connectionCount() ?? 0),
  )
  metrics.gauge('shards', 'Shards of the journal, by their state in this process.', ['state'], (set) => {
    const states = leadership()?.books.shardStates() ?? []
    for (const state of ['writing', 'recovering', 'deposed', 'closed']) {
      set(states.filter((item) => item === state).length, state)
    }
  })
  metrics.gauge('projection_lag_seconds', 'How long the tables have been behind the journal.', [], (set) =>
    set((leadership()?.projection.lagMs() ?? 0) / 1_000),
  )
  health.needs('matchmaker', () => {
    const states = leadership()?.books.shardStates()
    return states?.every((state) => state === 'writing') ?? false
  })
}
