// The database: the server of DATABASE_URL, or the programs and the data of the embedded PostgreSQL.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { connect } from '../database/connect.ts'
import { findBinaries } from '../database/embedded/binaries.ts'
import { StartError, startSentence } from '../start-error.ts'
import { type Finding, failed, ok } from './finding.ts'

type Row = { version: string; may_create: boolean }

export async function examineDatabase(config: Config): Promise<Finding[]> {
  return config.database_url === null ? examineEmbedded(config) : examineServer(config, config.database_url)
}

async function examineServer(config: Config, url: string): Promise<Finding[]> {
  const database = connect({ url, application_name: 'muster doctor', connections_max: 1 })
  try {
    const { rows } = await database.pool.query<Row>(`
      select current_setting('server_version') as version,
        has_database_privilege(current_database(), 'create') as may_create`)
    const { version, may_create } = rows[0]!
    if (may_create) return [ok('database', `PostgreSQL ${version} of DATABASE_URL`)]
    const grant = 'psql "$DATABASE_URL" -c "grant create on database NAME to ROLE"    (as the owner of the database)'
    return [failed('database', 'The role of DATABASE_URL may not create schemas in its database.', grant)]
  } catch (error) {
    return [failed('database', startSentence(error, config), 'psql "$DATABASE_URL" -c "select 1"')]
  } finally {
    await database.close()
  }
}

async function examineEmbedded({ data_dir }: Config): Promise<Finding[]> {
  try {
    const { postgres } = await findBinaries()
    const version_file = join(data_dir, 'postgres', 'PG_VERSION')
    const made = existsSync(version_file)
      ? `data of PostgreSQL ${readFileSync(version_file, 'utf8').trim()}`
      : 'no data yet'
    return [ok('database', `embedded, ${made}, ${postgres}`)]
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    return [failed('database', error.message, 'npm install --include=optional')]
  }
}
