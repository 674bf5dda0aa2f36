// Events of one lobby that only the journal has. The journal is kept for a while, and its index is by shard and seq: a
// reader finds the creation of the lobby by bisection, and searches a limited number of rows at a time.
import type { LobbyEventKind } from '@musterhost/contract'
import type { Pool } from 'pg'
import type { Change } from '../../journal/changes.ts'
import { decodePage, shardOf } from '../../journal/pages.ts'

/** Rows of the journal that one call searches. */
const SEARCHED_ROWS_MAX = 5_000
/** Rows between two numbers of 53 bits. */
const BISECTIONS_MAX = 64

/** `index`: of the change in its row. */
export type JournalEvent = { ts_ms: number; seq: number; index: number; kind: LobbyEventKind }
/** `seq`: of the last row that was searched. `read_ms`: its time; null when there is no later row about the lobby. */
export type JournalScan = { events: JournalEvent[]; seq: number; read_ms: number | null }

type Searched = { lobby_id: string; namespace_id: string; stop_ts: Date | null; after: number }

/** The seq of the last row before a time, or of the row before the first that is kept. */
export async function seqBefore(pool: Pool, namespace_id: string, ms: number): Promise<number> {
  const shard = shardOf(namespace_id)
  const { rows } = await pool.query<{ first: number | null; last: number | null }>(
    'select min(seq) as first, max(seq) as last from journal where shard = $1',
    [shard],
  )
  const { first, last } = rows[0]!
  if (first === null || last === null) return 0
  let [low, high] = [first, last + 1]
  for (let step = 0; low < high && step < BISECTIONS_MAX; step++) {
    const middle = Math.floor((low + high) / 2)
    const found = await pool.query<{ payload: Buffer }>('select payload from journal where shard = $1 and seq = $2', [
      shard,
      middle,
    ])
    // A row that was removed meanwhile is older than every kept one.
    const page_ms = found.rows[0] === undefined ? Number.NEGATIVE_INFINITY : decodePage(found.rows[0].payload).ms
    if (page_ms < ms) low = middle + 1
    else high = middle
  }
  return low - 1
}

export async function readJournalEvents(pool: Pool, searched: Searched): Promise<JournalScan> {
  const { lobby_id, namespace_id, stop_ts, after } = searched
  const { rows } = await pool.query<{ seq: number; payload: Buffer; row_count: number }>(SEARCH_SQL, [
    ...[shardOf(namespace_id), after, SEARCHED_ROWS_MAX],
    ...['lobby_closed', 'lobby_stalled', lobby_id].map((text) => Buffer.from(text)),
  ])
  const pages = rows.map(({ seq, payload }) => ({ seq, page: decodePage(payload) }))
  const events = pages.flatMap(({ seq, page }) =>
    page.entries
      .filter((entry) => entry.namespace_id === namespace_id)
      .flatMap(({ changes }) => changes)
      .map((change) => kindOf(change, lobby_id))
      .flatMap((kind, index) => (kind === null ? [] : [{ ts_ms: page.ms, seq, index, kind }])),
  )
  const last = pages.at(-1)
  const is_over =
    last === undefined ||
    rows[0]!.row_count < SEARCHED_ROWS_MAX ||
    (stop_ts !== null && last.page.ms > stop_ts.getTime())
  return { events, seq: last?.seq ?? after, read_ms: is_over ? null : last.page.ms }
}

/** Rows with both texts, and the last row that was searched. */
const SEARCH_SQL = `
  with part as materialized (
    select seq, payload from journal where shard = $1 and seq > $2 order by seq limit $3
  ), whole as (select count(*)::integer as row_count, max(seq) as seq from part)
  select part.seq, payload, row_count from part, whole
  where part.seq = whole.seq or (position($6::bytea in payload) > 0
    and (position($4::bytea in payload) > 0 or position($5::bytea in payload) > 0))
  order by part.seq`

function kindOf(change: Change, lobby_id: string): LobbyEventKind | null {
  if (change.kind === 'lobby_closed' && change.lobby_id === lobby_id) return change.is_closed ? 'closed' : 'reopened'
  if (change.kind === 'lobby_stalled' && change.lobby_id === lobby_id)
    return change.is_stalled ? 'stalled' : 'responding'
  return null
}
