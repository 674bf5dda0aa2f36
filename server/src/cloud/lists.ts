// How much of a list one response carries, newest first, and how it says that there is more.
import { type RawBuilder, type SqlBool, sql } from 'kysely'

/** Items of a list of the cloud API, unless the operation has a smaller maximum. */
export const LIST_MAX = 1_000

/** Cuts rows to `count_max`. The query requested one row more, which shows that there are more. */
export function cut<Row>(rows: readonly Row[], count_max = LIST_MAX): { rows: Row[]; is_cut: boolean } {
  return { rows: rows.slice(0, count_max), is_cut: rows.length > count_max }
}

/** For lists that the newest entry begins: the entries after the one with this id. An id that is not in the list ends it. */
export function isAfter(table: string, id: string, before_id: string): RawBuilder<SqlBool> {
  const [row, own_id] = [sql.table(table), sql.ref(`${table}.${id}`)]
  return sql<SqlBool>`(${sql.ref(`${table}.create_ts`)}, ${own_id}) < (
    select anchor.create_ts, anchor.${sql.ref(id)} from ${row} as anchor where anchor.${sql.ref(id)} = ${before_id}
  )`
}
