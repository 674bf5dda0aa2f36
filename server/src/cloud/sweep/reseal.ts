// After a rotation of the seals: what an older key closed (the columns of tokens/sealed-columns.ts) is closed with the
// current one, a few rows at a time. It may be broken off anywhere: what is left is found again by its key.
import { sql } from 'kysely'
import type { Context } from '../../context.ts'
import { SEALED_COLUMNS, type SealedColumn } from '../../tokens/sealed-columns.ts'

/** Rows that are read at once. */
const PAGE_ROWS_MAX = 500
/** Pages of a column in one sweep; the rest is for the next. */
const PAGES_MAX = 20

/** Returns how many. A secret that cannot be opened is logged and left unchanged, and the others go on. */
export async function resealAll(ctx: Context): Promise<number> {
  let count = 0
  for (const column of SEALED_COLUMNS) count += await resealColumn(ctx, column)
  return count
}

async function resealColumn(ctx: Context, sealed: SealedColumn): Promise<number> {
  const [table, id, column] = [sql.table(sealed.table), sql.ref(sealed.id), sql.ref(sealed.column)]
  const now_ms = ctx.now()
  const current = `${ctx.seals.prefix(now_ms)}%`
  let count = 0
  let after = sql``
  for (let page = 0; page < PAGES_MAX; page++) {
    const { rows } = await sql<{ id: string; seal: string }>`
      select ${id}::text as id, ${column} as seal from ${table}
      where ${column} not like ${current} ${after} order by ${id} limit ${PAGE_ROWS_MAX}`.execute(ctx.db)
    for (const row of rows) {
      const purpose = sealed.purposeOf(row.id)
      try {
        const fresh = ctx.seals.seal(purpose, ctx.seals.open(purpose, row.seal), now_ms)
        // Not what has been written anew meanwhile.
        const { numAffectedRows } =
          await sql`update ${table} set ${column} = ${fresh} where ${id} = ${row.id} and ${column} = ${row.seal}`.execute(
            ctx.db,
          )
        count += Number(numAffectedRows)
      } catch (error) {
        ctx.log.error({ err: error, purpose }, 'a secret cannot be closed anew')
      }
    }
    if (rows.length < PAGE_ROWS_MAX) break
    after = sql`and ${id} > ${rows.at(-1)!.id}`
  }
  return count
}
