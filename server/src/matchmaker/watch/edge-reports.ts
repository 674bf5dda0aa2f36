// Open connections to lobbies, as every edge reports them (edge/report-connections.ts), told to the books: a lobby whose
// server never calls `connected` is not idle while it has some. Each look reads what has changed since the one before.
//
// Such a lobby ends only by reports: every registered edge must have reported after the lobby's grace was over. So nothing
// ends while reports are missing: not while an edge is restarted, and not before a new matchmaker has heard every edge
// twice. An edge whose reports are missing for SILENT_HOURS_MAX is taken for gone, as a player whose server never reports
// that he has left (CONNECTED_MS_MAX): its machine was removed without a word, and its lobbies would never end.
import type { Context } from '../../context.ts'
import { type Watch, watchEvery } from '../../database/poller.ts'
import { setConnections, setReported } from '../book/evolve.ts'
import type { Book } from '../book/state.ts'
import type { Books } from '../shards/books.ts'

const LOOK_EVERY_MS = 1_000
/** Looks without a new report, after which the log says so. */
const SILENT_LOOKS = 5
const SILENT_HOURS_MAX = 8
/** Fewer reports than a count of 0 stays in the table (REPORTED_ZERO_KEPT): after more, all counts are read anew. */
const MISSED_REPORTS_MAX = 30
const EDGES_MAX = 1_000

/** What is known of one edge. `reported_ms`: its last report was made at this book time or later; null: not heard yet. */
type Edge = {
  seq: number
  reported_ms: number | null
  silent_looks: number
  counts: Map<string, Count>
}
type Count = { namespace_id: string; connection_count: number }
type EdgeRow = {
  edge_id: string
  report_seq: number | null
  change_seq: number | null
  is_silent: boolean
  is_gone: boolean
}

export type EdgeReports = Pick<Watch, 'close'> & {
  /** Open connections to all lobbies, as the books were told. */
  connectionCount: () => number
}

/** Resolves when it has looked once, or could not. */
export async function watchEdgeReports(ctx: Context, books: Books): Promise<EdgeReports> {
  const { pool, log } = ctx
  const edges = new Map<string, Edge>()
  /** By namespace and lobby: open connections over all edges. */
  const totals = new Map<string, Map<string, number>>()
  /** Lobbies whose total has changed since the books were told, by namespace. */
  const changed = new Map<string, Set<string>>()
  const told = new WeakSet<Book>()
  /** Since when all edges have reported; null: they have not. */
  let since_ms: number | null = null
  let last_look_ms: number | null = null

  async function look(): Promise<void> {
    const now_ms = books.nowMs()
    const { rows } = await pool.query<EdgeRow>(EDGES_QUERY)
    for (const [edge_id, edge] of edges) {
      if (rows.some((row) => row.edge_id === edge_id && !row.is_gone)) continue
      edges.delete(edge_id)
      addAll(edge.counts, -1)
    }
    for (const row of rows) await hear(row)
    last_look_ms = now_ms
    tell(reportedMs(now_ms))
  }

  async function hear(row: EdgeRow): Promise<void> {
    const { edge_id, report_seq, change_seq, is_silent, is_gone } = row
    if (is_gone) {
      log.warn({ edge_id }, `an edge has reported nothing for ${SILENT_HOURS_MAX} hours; it is taken for gone`)
      await pool.query('delete from edges where edge_id = $1', [edge_id])
      return
    }
    const edge = edges.get(edge_id) ?? { seq: 0, reported_ms: null, silent_looks: 0, counts: new Map() }
    const has_new = report_seq !== null && report_seq !== edge.seq
    // It was written after the look before. The first report that is seen may be of any age.
    const is_heard = has_new && edges.has(edge_id)
    if (has_new) {
      if (change_seq! > edge.seq) await readCounts(edge_id, edge, report_seq)
      if (is_heard) edge.reported_ms = last_look_ms
      edge.seq = report_seq
    }
    edges.set(edge_id, edge)
    edge.silent_looks = is_heard ? 0 : edge.silent_looks + 1
    const has_fallen_silent = edge.silent_looks === SILENT_LOOKS
    if (has_fallen_silent) log.warn({ edge_id }, 'an edge reports no connections; lobbies that may have some stay')
    if (is_heard ? is_silent : has_fallen_silent && !is_silent) await recordSilence(edge_id, !is_heard)
  }

  async function recordSilence(edge_id: string, is_silent: boolean): Promise<void> {
    const since = is_silent ? 'now()' : 'null'
    await pool.query(`update edges set silent_ts = ${since} where edge_id = $1`, [edge_id])
  }

  async function readCounts(edge_id: string, edge: Edge, report_seq: number): Promise<void> {
    const is_anew = edge.seq === 0 || report_seq - edge.seq > MISSED_REPORTS_MAX
    const { rows } = await pool.query<Count & { lobby_id: string }>({
      name: 'edge-connections',
      text: COUNTS_SQL,
      values: [edge_id, is_anew ? 0 : edge.seq],
    })
    const changed = new Map(rows.map(({ lobby_id, ...count }) => [lobby_id, count]))
    if (is_anew) addAll(edge.counts, -1)
    else addAll(new Map([...edge.counts].filter(([lobby_id]) => changed.has(lobby_id))), -1)
    if (is_anew) edge.counts.clear()
    addAll(changed, 1)
    for (const [lobby_id, count] of changed) {
      if (count.connection_count === 0) edge.counts.delete(lobby_id)
      else edge.counts.set(lobby_id, count)
    }
  }

  function addAll(counts: ReadonlyMap<string, Count>, sign: 1 | -1): void {
    for (const [lobby_id, { namespace_id, connection_count }] of counts) {
      const lobbies = totals.get(namespace_id) ?? new Map<string, number>()
      const total = (lobbies.get(lobby_id) ?? 0) + sign * connection_count
      if (total === 0) lobbies.delete(lobby_id)
      else lobbies.set(lobby_id, total)
      if (lobbies.size === 0) totals.delete(namespace_id)
      else totals.set(namespace_id, lobbies)
      changed.set(namespace_id, (changed.get(namespace_id) ?? new Set()).add(lobby_id))
    }
  }

  /** Until when every edge has reported. No edge: no connection. */
  function reportedMs(now_ms: number): number | null {
    const times = [...edges.values()].map(({ reported_ms }) => reported_ms)
    return times.reduce<number | null>(
      (least, ms) => (least === null || ms === null ? null : Math.min(least, ms)),
      now_ms,
    )
  }

  function tell(reported_ms: number | null): void {
    const now_ms = books.nowMs()
    if (reported_ms !== null) since_ms ??= now_ms
    for (const namespace_id of books.namespaceIds()) {
      const book = books.book(namespace_id)
      if (book === undefined) continue
      const lobbies = totals.get(namespace_id)
      const news = told.has(book) ? changed.get(namespace_id) : lobbies?.keys()
      told.add(book)
      for (const lobby_id of news ?? []) setConnections(book, lobby_id, lobbies?.get(lobby_id) ?? 0, now_ms)
      if (reported_ms !== null) setReported(book, since_ms!, reported_ms)
    }
    changed.clear()
  }

  const endCommits = books.onCommits({
    onCommit() {},
    onReload() {
      // Books that were read anew do not know when connections closed.
      since_ms = null
    },
  })
  const failure = 'what the edges report of connections could not be read; trying again'
  const watch = watchEvery(ctx, LOOK_EVERY_MS, { look, failure })
  await watch.looking()
  return {
    connectionCount: () =>
      [...totals.values()].flatMap((lobbies) => [...lobbies.values()]).reduce((sum, n) => sum + n, 0),
    close() {
      endCommits()
      return watch.close()
    },
  }
}

const EDGES_QUERY = {
  name: 'edges',
  text: `
    select edges.edge_id, report_seq, change_seq, silent_ts is not null as is_silent,
      coalesce(silent_ts < now() - interval '${SILENT_HOURS_MAX} hours', false) as is_gone
    from edges left join edge_reports on edge_reports.edge_id = edges.edge_id
    order by start_ts limit ${EDGES_MAX}`,
}

const COUNTS_SQL = `
  select lobby_connections.lobby_id, namespace_id, connection_count
  from lobby_connections join lobbies on lobbies.lobby_id = lobby_connections.lobby_id
  where edge_id = $1 and change_seq > $2`
