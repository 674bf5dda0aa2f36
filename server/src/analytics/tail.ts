// What has happened and is not aggregated yet: the end of the journal after the aggregation's position, and ends of processes
// that are not counted. The aggregation turns them into facts and writes them. A query derives the same facts, and adds them
// to its result.
import type { ClientBase } from 'pg'
import type { RunEnd } from '../database/schema.ts'
import { type Row, readTails } from '../journal/read.ts'
import { exitOf, type Fact, factsOf, type RunEnds } from './facts.ts'
import { type LiveState, readLiveState } from './live-state.ts'
import type { Series } from './series.ts'

export type Tail = {
  facts: Fact[]
  live_state: LiveState
  /** The last seq of each shard that has rows. */
  read: Map<number, number>
  /** There may be more. */
  is_cut: boolean
}

/**
 * `after`: the position in each shard; `rows_max`: of a shard. Facts are of `namespace_ids` only, where they are named.
 * Throws JournalGap.
 */
export async function readTail(
  db: ClientBase,
  after: ReadonlyMap<number, number>,
  { rows_max, namespace_ids }: { rows_max: number; namespace_ids?: ReadonlySet<string> },
): Promise<Tail> {
  const tails = await readTails(db, after, rows_max)
  const rows = [...tails.values()].flat().map((row) => only(row, namespace_ids))
  const { facts, live_state } = await factsOfRows(db, rows)
  const read = new Map([...tails].map(([shard, of_shard]) => [shard, of_shard.at(-1)!.seq]))
  return { facts, live_state, read, is_cut: [...tails.values()].some(({ length }) => length === rows_max) }
}

/** And what is known then. */
export async function factsOfRows(db: ClientBase, rows: readonly Row[]): Promise<Pick<Tail, 'facts' | 'live_state'>> {
  const live_state = await readLiveState(db, rows)
  const ends = await readEnds(db, exitedIn(rows))
  const facts = rows.flatMap(({ page }) => page.entries.flatMap((entry) => factsOf(live_state, entry, page.ms, ends)))
  return { facts, live_state: live_state }
}

function only(row: Row, namespace_ids: ReadonlySet<string> | undefined): Row {
  if (namespace_ids === undefined) return row
  const entries = row.page.entries.filter(({ namespace_id }) => namespace_ids.has(namespace_id))
  return { ...row, page: { ...row.page, entries } }
}

function exitedIn(rows: readonly Row[]): string[] {
  const changes = rows.flatMap(({ page }) => page.entries.flatMap((entry) => entry.changes))
  return changes.flatMap((change) =>
    change.kind === 'lobby_stopped' && change.reason === 'exited' ? [change.lobby_id] : [],
  )
}

export async function readEnds(db: ClientBase, lobby_ids: readonly string[]): Promise<RunEnds> {
  if (lobby_ids.length === 0) return new Map()
  const { rows } = await db.query<RunEnd & { lobby_id: string }>(
    'select lobby_id, exit_code, exit_reason from lobby_runs where lobby_id = any($1) and exit_ts is not null',
    [lobby_ids],
  )
  return new Map(rows.map((row) => [row.lobby_id, row]))
}

/** Exits of lobbies that were stopped, and whose processes have ended since. */
export async function readExits(db: ClientBase, namespace_ids: readonly string[], tail: Tail): Promise<Fact[]> {
  const { rows } = await db.query<Series & { lobby_id: string; stop_ts: Date; exit_code: number }>(
    `select lobby_id, analytics_series.namespace_id, analytics_series.region, game_mode, stop_ts, exit_code
      from analytics_lobbies
      join analytics_series using (series_id)
      join lobby_runs using (lobby_id)
      where stop_ts is not null and exit_ts is not null and exit_code is not null
        and analytics_series.namespace_id = any($1)`,
    [namespace_ids],
  )
  const stopped = tail.live_state.touched().lobbies.flatMap(({ lobby_id, series, stop_ms }) => {
    return stop_ms === null ? [] : [{ lobby_id, series, stop_ms }]
  })
  const ends = await readEnds(
    db,
    stopped.map(({ lobby_id }) => lobby_id),
  )
  return [
    ...rows.map(({ stop_ts, exit_code, namespace_id, region, game_mode }) =>
      exitOf({ namespace_id, region, game_mode }, stop_ts.getTime(), exit_code),
    ),
    ...stopped.flatMap(({ lobby_id, series, stop_ms }) => {
      const exit_code = ends.get(lobby_id)?.exit_code ?? null
      return exit_code === null ? [] : [exitOf(series, stop_ms, exit_code)]
    }),
  ]
}
