// The audit log of a time window as CSV, oldest first. Names are people's own words: no cell of it is a formula, or drives a
// terminal.
import { csvCell } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { timestamp } from '../times.ts'
import { type AuditWindow, type EventRow, selectEvents } from './rows.ts'

/** Events that one query reads. */
const ROWS_AT_ONCE_MAX = 1_000
/** Events of an exported audit log. */
const ROWS_MAX = 1_000_000

const CELLS: readonly (readonly [name: string, cell: (row: EventRow) => string])[] = [
  ['event_id', (row) => row.event_id],
  ['create_ts', (row) => timestamp(row.create_ts)],
  ['group_id', (row) => row.group_id ?? ''],
  ['game_id', (row) => row.game_id ?? ''],
  ['namespace_id', (row) => row.namespace_id ?? ''],
  ['actor_kind', (row) => row.actor_kind],
  ['user_id', (row) => row.user_id ?? ''],
  ['name', (row) => row.name ?? ''],
  ['token_id', (row) => row.token_id ?? ''],
  ['client_ip', (row) => row.client_ip],
  ['ray_id', (row) => row.ray_id],
  ['operation', (row) => row.operation],
  ['outcome', (row) => row.outcome],
  ['code', (row) => row.code ?? ''],
  ['changes', (row) => JSON.stringify(row.changes)],
  ['dropped_count', (row) => String(row.dropped_count)],
]

const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/** Rows are queried as they are fetched, so that neither memory nor a connection waits for a slow reader. */
export async function* auditCsv(ctx: Context, window: AuditWindow, rows_max = ROWS_MAX): AsyncGenerator<string> {
  yield `${CELLS.map(([name]) => name).join()}\r\n`
  let after = FIRST_ID
  for (let count = 0; count < rows_max; ) {
    const rows = await selectEvents(ctx, window.group_id)
      .where('event_id', '>', after)
      .where('event.create_ts', '>=', new Date(window.query_start))
      .where('event.create_ts', '<', new Date(window.query_end))
      .orderBy('event_id')
      .limit(Math.min(ROWS_AT_ONCE_MAX, rows_max - count))
      .execute()
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows.map((row) => `${CELLS.map(([, cell]) => csvCell(cell(row))).join()}\r\n`).join('')
    count += rows.length
    after = last.event_id
  }
  const words = `is_cut: there may be more events than these ${rows_max}. Export a shorter time.`
  yield `${CELLS.map((_, index) => (index === 0 ? csvCell(words) : '')).join()}\r\n`
}
