// The database's part of a restore: our own migrations make the tables of the backup, the rows fill them, and the
// migrations that are newer than the backup run over them as over any older database.
import { join } from 'node:path'
import { sql } from 'kysely'
import type { Logger } from 'pino'
import { StartError } from '../config/start-error.ts'
import { connect } from '../database/connect.ts'
import { migrate } from '../database/migrate.ts'
import type { Migration } from '../database/migrations/index.ts'
import { loadJobs, makeQueue } from './jobs.ts'
import { JOBS_FILE, type Manifest, tableFile } from './manifest.ts'
import { findRows, loadTables, readTables, setSequences } from './rows.ts'
import { connectAlone, disconnect } from './source.ts'

/** Connections of a restore to the database. */
const CONNECTIONS_MAX = 2

/** Throws a StartError unless the database is new, or what a restore of this backup that was broken off made of it. */
export async function requireEmptyDatabase(url: string, migrations: readonly Migration[]): Promise<void> {
  const client = await connectAlone(url)
  try {
    const { rows } = await client.query<{ is_ours: boolean }>("select to_regclass('migrations') is not null as is_ours")
    const ran = rows[0]?.is_ours ? await client.query<{ name: string }>('select name from migrations') : { rows: [] }
    const isFurther = ran.rows.some(({ name }) => !migrations.some((migration) => migration.name === name))
    const filled = ran.rows.length > 0 ? await findRows(client) : ((await readTables(client))[0]?.name ?? null)
    if (filled === null && !isFurther) return
    const why = filled === null ? 'its tables are newer than the backup' : `it has the table ${filled}`
    throw new StartError(
      `The database that DATABASE_URL names is not empty: ${why}. A backup is restored into a new database ` +
        '("createdb").',
    )
  } finally {
    await disconnect(client)
  }
}

export async function restoreRows(
  url: string,
  backup: { folder: string; manifest: Manifest; migrations: readonly Migration[]; log: Logger },
): Promise<{ migrated: string[]; lost_run_count: number }> {
  const { log, migrations } = backup
  const connection = connect({ url, application_name: 'muster restore', connections_max: CONNECTIONS_MAX, log })
  try {
    await migrate(connection.db, log, migrations)
    await makeQueue(url, log)
    await loadAll(url, backup)
    const migrated = await migrate(connection.db, log)
    const lost = await connection.db
      .updateTable('lobby_runs')
      // The backup is the last that is known of them.
      .set({ exit_ts: sql`greatest(start_ts, ${backup.manifest.create_ts}::timestamptz)`, exit_reason: 'lost' })
      .where('exit_ts', 'is', null)
      .executeTakeFirst()
    return { migrated, lost_run_count: Number(lost.numUpdatedRows) }
  } finally {
    await connection.close()
  }
}

async function loadAll(url: string, { folder, manifest }: { folder: string; manifest: Manifest }): Promise<void> {
  const client = await connectAlone(url)
  try {
    await client.query('begin')
    await loadTables(client, manifest.tables, (name) => join(folder, tableFile(name)))
    await setSequences(client, manifest.sequences)
    const job_count = await loadJobs(client, join(folder, JOBS_FILE))
    if (job_count !== manifest.job_count)
      throw new Error(`The backup holds ${job_count} jobs and names ${manifest.job_count}.`)
    await client.query('commit')
  } finally {
    await disconnect(client)
  }
}
