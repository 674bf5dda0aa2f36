// The last backup that succeeded, as `muster backup` and the schedule record it.

/** When the last backup into this place was complete, in milliseconds; null: never. `to`: as in the settings. */
export async function lastBackup(
  db: { query: (text: string, values: unknown[]) => Promise<{ rows: { end_ts: Date | null }[] }> },
  to: string,
): Promise<number | null> {
  const { rows } = await db.query('select max(end_ts) as end_ts from backups where starts_with(folder, $1)', [
    `${to}/backups/`,
  ])
  return rows[0]?.end_ts?.getTime() ?? null
}
