// How things stand at the matchmaker, for the operator: nothing is counted until somebody looks.
import type { Context } from '../../context.ts'
import type { Projection } from '../projection/projection.ts'
import type { Books } from '../shards/books.ts'
import type { EdgeReports } from '../watch/edge-reports.ts'
import { takeCensus, tellLobbies, tellPlayers } from './lobby-counts.ts'

const PLACE = ['namespace_id', 'region', 'game_mode', 'state'] as const

/** `office`: null while another process writes; then there is nothing to tell, and this one is not ready. */
export function tellMatchmaker(
  { metrics, health }: Context,
  office: () => { books: Books; projection: Projection; edge_reports: EdgeReports } | null,
): void {
  metrics.gauge(
    'lobbies',
    'Lobbies: starting, ready, closed, or stalled (the server does not answer).',
    PLACE,
    async (tell) => {
      const books = office()?.books
      if (books !== undefined) tellLobbies(await takeCensus(books), tell)
    },
  )
  metrics.gauge('players', 'Players: reserved (a seat, not there yet) or connected.', PLACE, async (tell) => {
    const books = office()?.books
    if (books !== undefined) tellPlayers(await takeCensus(books), tell)
  })
  metrics.gauge('lobby_connections', 'Open connections to lobbies, as the edges report them.', [], (tell) =>
    tell(office()?.edge_reports.connectionCount() ?? 0),
  )
  metrics.gauge('shards', 'Shards of the journal, by what this process does with them.', ['state'], (tell) => {
    const states = office()?.books.shardStates() ?? []
    for (const state of ['writing', 'recovering', 'deposed', 'closed']) {
      tell(states.filter((item) => item === state).length, state)
    }
  })
  metrics.gauge('projection_lag_seconds', 'For how long the tables have been behind the journal.', [], (tell) =>
    tell((office()?.projection.lagMs() ?? 0) / 1_000),
  )
  health.needs(
    'matchmaker',
    () =>
      office()
        ?.books.shardStates()
        .every((state) => state === 'writing') ?? false,
  )
}
