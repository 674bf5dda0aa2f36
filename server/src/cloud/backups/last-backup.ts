// The last backup of a schedule, as `muster backup` and the schedule record it.
import type { Context } from '../../context.ts'

/** When the last backup into this place was complete, in milliseconds; null: never. */
export async function lastBackup({ db }: Context, to: string): Promise<number | null> {
  const row = await db
    .selectFrom('backups')
    .select(({ fn }) => fn.max('end_ts').as('end_ts'))
    .where(({ eb, fn, val }) => eb(fn('starts_with', ['folder', val(`${to}/backups/`)]), '=', true))
    .executeTakeFirst()
  return row?.end_ts?.getTime() ?? null
}
