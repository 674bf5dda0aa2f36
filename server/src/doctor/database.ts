// The database: the server of DATABASE_URL, or the programs and the data of the embedded PostgreSQL.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { StartError, startSentence } from '../config/start-error.ts'
import { connect } from '../database/connect.ts'
import { findBinaries } from '../database/embedded/binaries.ts'
import { openProbe, type Probed } from '../database/probe.ts'
import { isUnproven } from '../database/tls.ts'
import { serversOf } from '../text/database-url.ts'
import { type Finding, failed, messageOf, ok, warning } from './finding.ts'

const SYNCHRONOUS = `psql -c "alter system set synchronous_standby_names = 'ANY 1 (*)'" -c "select pg_reload_conf()"    (on the primary, as a superuser; with Patroni: synchronous_mode)`

const UNPROVEN =
  'Connections of DATABASE_URL are encrypted, but the certificate of PostgreSQL is not checked: anybody between can read them.'
const PROVE = 'Write sslmode=verify-full and sslrootcert=FILE into DATABASE_URL.'

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
    if (may_create) {
      const findings = [ok('database', `PostgreSQL ${version} of DATABASE_URL`), ...(await examineStandbys(url))]
      return isUnproven(serversOf(url)[0]!.url) ? [...findings, warning('database', UNPROVEN, PROVE)] : findings
    }
    const grant = 'psql "$DATABASE_URL" -c "grant create on database NAME to ROLE"    (as the owner of the database)'
    return [failed('database', 'The role of DATABASE_URL may not create schemas in its database.', grant)]
  } catch (error) {
    return [failed('database', startSentence(error, config), 'psql "$DATABASE_URL" -c "select 1"')]
  } finally {
    await database.close()
  }
}

/**
 * Examines several servers: which is the primary, which do not respond, and whether a failover loses acknowledged
 * writes.
 */
async function examineStandbys(url: string): Promise<Finding[]> {
  const servers = serversOf(url)
  if (servers.length === 1) return []
  const findings: Finding[] = []
  const probes: Probed[] = []
  for (const server of servers) {
    try {
      const probe = await openProbe(server)
      probe.close()
      probes.push(probe)
    } catch (error) {
      const message = `${server.name} of DATABASE_URL cannot take over: ${messageOf(error)}.`
      findings.push(warning('database', message, `pg_isready --host ${server.host} --port ${server.port}`))
    }
  }
  const primaries = probes.filter(({ is_read_only }) => !is_read_only)
  const names = primaries.map(({ server }) => server.name)
  if (new Set(probes.map(({ system_id }) => system_id)).size > 1 || primaries.length > 1) {
    const message = `The servers of DATABASE_URL are not one primary and its standbys; ${names.join(', ')} accept writes.`
    const remedy =
      'Make each other server a standby of the right one (pg_rewind or pg_basebackup), or remove it from the URL.'
    return [...findings, failed('database', message, remedy)]
  }
  const [primary] = primaries
  if (primary === undefined) return findings
  if (primary.is_synchronous)
    return [...findings, ok('database', `${names[0]} is the primary; commits wait for a standby`)]
  const message = `Commits on ${names[0]} do not wait for a standby: a failover loses acknowledged seats.`
  return [...findings, warning('database', message, SYNCHRONOUS)]
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
