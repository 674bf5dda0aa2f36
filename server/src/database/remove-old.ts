// Removes rows after their retention, the oldest first, by the index of their time. Each statement removes few enough that
// nothing waits for it long, and each sweep has a maximum. Rows that are locked are left to the next sweep.
import type { Pool } from 'pg'

/** Rows removed by one statement. */
const ROWS_AT_ONCE_MAX = 1_000
/** Statements of one sweep; the next sweep removes the rest. */
const STATEMENTS_MAX = 50

export type OldRows = {
  table: string
  /** The column of the time at which a row ended; one that is null is never old. There is an index on it. */
  ended: string
  /** What must be so beside that, in SQL. */
  only?: string
}

/** The statement that removes some of them; $1 is the time before which they ended, $2 how many at most. */
export function removeOldSql({ table, ended, only }: OldRows): string {
  return `delete from ${table} where ctid = any(array(
    select ctid from ${table} where ${ended} < $1${only === undefined ? '' : ` and ${only}`}
    order by ${ended} limit $2 for update skip locked))`
}

/** Removes rows that ended before `before_ms`. Returns how many. */
export function removeOld(pool: Pool, rows: OldRows, before_ms: number): Promise<number> {
  const text = removeOldSql(rows)
  const before = new Date(before_ms)
  return removeInBatches((rows_max) => pool.query(text, [before, rows_max]).then(({ rowCount }) => rowCount ?? 0))
}

/** Calls `remove` until it removes less than it may. Returns how many were removed. */
export async function removeInBatches(remove: (rows_max: number) => Promise<number>): Promise<number> {
  let count = 0
  for (let statements = 0; statements < STATEMENTS_MAX; statements++) {
    const removed = await remove(ROWS_AT_ONCE_MAX)
    count += removed
    if (removed < ROWS_AT_ONCE_MAX) break
  }
  return count
}
