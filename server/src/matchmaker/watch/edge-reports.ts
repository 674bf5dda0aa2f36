// Open connections to lobbies, as every edge reports them (edge/presence/report-connections.ts), for the books: a lobby whose server
// never calls `connected` is not idle while it has some. Each read takes what has changed since the one before.
//
// Such a lobby ends only by reports: every registered edge must have reported after the lobby's grace was over. So nothing
// ends while reports are missing: not while an edge restarts, and not before a new matchmaker has two reports of every
// edge. An edge without reports for SILENT_HOURS_MAX counts as gone: its machine was removed without notice, and its
// lobbies would never end. (CONNECTED_MS_MAX does the same for players.)
import type { Context } from '../../context.ts'
import type { Poller, PollerOptions, Watch } from '../../database/poller.ts'
import { setConnections, setReported } from '../book/evolve.ts'
import type { Book } from '../book/state.ts'
import type { Books } from '../shards/books.ts'

/** Reads without a new report, after which a warning is logged. */
const SILENT_READS_MAX = 5
/** An edge that has not reported for this long counts as gone. */
const SILENT_HOURS_MAX = 8
/** Fewer reports than a count of 0 stays in the table (REPORTED_ZERO_KEPT). After more, all counts are read again. */
const MISSED_REPORTS_MAX = 30
/** Edges whose reports are read. */
const EDGES_MAX = 1_000

/** What is known of one edge. `reported_ms`: its last report was made at this book time or later; null: it has none yet. */
type Edge = {
  seq: number
  reported_ms: number | null
  silent_reads: number
  counts: Map<string, Count>
}
type Count = { namespace_id: string; connection_count: number }
export type EdgeRow = {
  edge_id: string
  report_seq: number | null
  change_seq: number | null
  is_silent: boolean
  is_gone: boolean
}

/** Reads the edges again and again. Observed is one. */
type ObservedEdges = { follow: (options: PollerOptions) => Poller; read: () => Promise<{ edges: readonly EdgeRow[] }> }

export type EdgeReports = Pick<Watch, 'close'> & {
  /** Open connections to all lobbies, as the books have them. */
  connectionCount: () => number
}

/** Resolves when the reports have been read once, or could not be. `onEdges`: an edge has begun or ended, or reports for the first time. */
export async function watchEdgeReports(
  ctx: Context,
  { books, observed, onEdges }: { books: Books; observed: ObservedEdges; onEdges: () => void },
): Promise<EdgeReports> {
  const reports = new ConnectionReports(ctx, books, observed)
  const endCommits = books.onCommits({
    onCommit() {},
    onReload: () => reports.onReload(),
  })
  const failure = 'the connection reports of the edges could not be read; trying again'
  const watch = observed.follow({
    async run() {
      if (await reports.read()) onEdges()
    },
    failure,
  })
  await watch.running()
  return {
    connectionCount: () => reports.connectionCount(),
    close() {
      endCommits()
      return watch.close()
    },
  }
}

class ConnectionReports {
  readonly #ctx: Pick<Context, 'pool' | 'log'>
  readonly #books: Books
  readonly #observed: ObservedEdges
  #known = ''
  readonly #edges = new Map<string, Edge>()
  /** By namespace and lobby: open connections over all edges. */
  readonly #totals = new Map<string, Map<string, number>>()
  /** Lobbies whose total has changed since it was last set in the books, by namespace. */
  readonly #changed = new Map<string, Set<string>>()
  /** Books that have all totals of their lobbies. */
  readonly #informed = new WeakSet<Book>()
  /** Since when all edges have reported; null: they have not. */
  #since_ms: number | null = null
  #last_read_ms: number | null = null

  constructor(ctx: Pick<Context, 'pool' | 'log'>, books: Books, observed: ObservedEdges) {
    this.#ctx = ctx
    this.#books = books
    this.#observed = observed
  }

  connectionCount(): number {
    const counts = [...this.#totals.values()].flatMap((lobbies) => [...lobbies.values()])
    return counts.reduce((sum, count) => sum + count, 0)
  }

  /** Books that were read again do not know when connections closed. */
  onReload(): void {
    this.#since_ms = null
  }

  /** Returns whether there are other edges than before, or one that has reported for the first time. */
  async read(): Promise<boolean> {
    const now_ms = this.#books.nowMs()
    const { edges: rows } = await this.#observed.read()
    for (const [edge_id, edge] of this.#edges) {
      if (rows.some((row) => row.edge_id === edge_id && !row.is_gone)) continue
      this.#edges.delete(edge_id)
      this.#addAll(edge.counts, -1)
    }
    for (const row of rows) await this.#readEdge(row)
    this.#last_read_ms = now_ms
    this.#updateBooks(this.#reportedMs(now_ms))
    const known = rows.map(({ edge_id, report_seq }) => `${edge_id} ${report_seq !== null}`).join()
    const has_changed = known !== this.#known
    this.#known = known
    return has_changed
  }

  async #readEdge(row: EdgeRow): Promise<void> {
    const { edge_id, report_seq, change_seq, is_silent, is_gone } = row
    const { log, pool } = this.#ctx
    if (is_gone) {
      log.warn({ edge_id }, `an edge has reported nothing for ${SILENT_HOURS_MAX} hours; it counts as gone`)
      await pool.query('delete from edges where edge_id = $1', [edge_id])
      return
    }
    const edge = this.#edges.get(edge_id) ?? { seq: 0, reported_ms: null, silent_reads: 0, counts: new Map() }
    const has_new = report_seq !== null && report_seq !== edge.seq
    // Written after the read before. The first report that is seen may be of any age.
    const is_fresh = has_new && this.#edges.has(edge_id)
    if (has_new) {
      if (change_seq! > edge.seq) await this.#readCounts(edge_id, edge, report_seq)
      if (is_fresh) edge.reported_ms = this.#last_read_ms
      edge.seq = report_seq
    }
    this.#edges.set(edge_id, edge)
    edge.silent_reads = is_fresh ? 0 : edge.silent_reads + 1
    const has_fallen_silent = edge.silent_reads === SILENT_READS_MAX
    if (has_fallen_silent) log.warn({ edge_id }, 'an edge reports no connections; lobbies that may have some stay')
    if (is_fresh ? is_silent : has_fallen_silent && !is_silent) await this.#recordSilence(edge_id, !is_fresh)
  }

  async #recordSilence(edge_id: string, is_silent: boolean): Promise<void> {
    const since = is_silent ? 'now()' : 'null'
    await this.#ctx.pool.query(`update edges set silent_ts = ${since} where edge_id = $1`, [edge_id])
  }

  async #readCounts(edge_id: string, edge: Edge, report_seq: number): Promise<void> {
    const is_complete = edge.seq === 0 || report_seq - edge.seq > MISSED_REPORTS_MAX
    const { rows } = await this.#ctx.pool.query<Count & { lobby_id: string }>({
      name: 'edge-connections',
      text: COUNTS_SQL,
      values: [edge_id, is_complete ? 0 : edge.seq],
    })
    const changed = new Map(rows.map(({ lobby_id, ...count }) => [lobby_id, count]))
    if (is_complete) this.#addAll(edge.counts, -1)
    else this.#addAll(new Map([...edge.counts].filter(([lobby_id]) => changed.has(lobby_id))), -1)
    if (is_complete) edge.counts.clear()
    this.#addAll(changed, 1)
    for (const [lobby_id, count] of changed) {
      if (count.connection_count === 0) edge.counts.delete(lobby_id)
      else edge.counts.set(lobby_id, count)
    }
  }

  #addAll(counts: ReadonlyMap<string, Count>, sign: 1 | -1): void {
    for (const [lobby_id, { namespace_id, connection_count }] of counts) {
      const lobbies = this.#totals.get(namespace_id) ?? new Map<string, number>()
      const total = (lobbies.get(lobby_id) ?? 0) + sign * connection_count
      if (total === 0) lobbies.delete(lobby_id)
      else lobbies.set(lobby_id, total)
      if (lobbies.size === 0) this.#totals.delete(namespace_id)
      else this.#totals.set(namespace_id, lobbies)
      this.#changed.set(namespace_id, (this.#changed.get(namespace_id) ?? new Set()).add(lobby_id))
    }
  }

  /** Until when every edge has reported. Without an edge there is no connection. */
  #reportedMs(now_ms: number): number | null {
    const times = [...this.#edges.values()].map(({ reported_ms }) => reported_ms)
    return times.reduce<number | null>(
      (least, ms) => (least === null || ms === null ? null : Math.min(least, ms)),
      now_ms,
    )
  }

  #updateBooks(reported_ms: number | null): void {
    const now_ms = this.#books.nowMs()
    if (reported_ms !== null) this.#since_ms ??= now_ms
    for (const namespace_id of this.#books.namespaceIds()) {
      const book = this.#books.book(namespace_id)
      if (book === undefined) continue
      const lobbies = this.#totals.get(namespace_id)
      const news = this.#informed.has(book) ? this.#changed.get(namespace_id) : lobbies?.keys()
      this.#informed.add(book)
      for (const lobby_id of news ?? []) setConnections(book, lobby_id, lobbies?.get(lobby_id) ?? 0, now_ms)
      if (reported_ms !== null) setReported(book, this.#since_ms!, reported_ms)
    }
    this.#changed.clear()
  }
}

export const EDGES_SQL = `
  select edges.edge_id, report_seq, change_seq, silent_ts is not null as is_silent,
    coalesce(silent_ts < now() - interval '${SILENT_HOURS_MAX} hours', false) as is_gone
  from edges left join edge_reports on edge_reports.edge_id = edges.edge_id
  order by start_ts limit ${EDGES_MAX}`

const COUNTS_SQL = `
  select lobby_connections.lobby_id, namespace_id, connection_count
  from lobby_connections join lobbies on lobbies.lobby_id = lobby_connections.lobby_id
  where edge_id = $1 and change_seq > $2`
