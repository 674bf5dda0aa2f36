// The PostgreSQL of a test run: the real one, in a temporary folder, with a template database that is migrated.
import { rm } from 'node:fs/promises'
import { runMigrations } from 'graphile-worker'
import pg from 'pg'
import pino from 'pino'
import { connect } from '../src/database/connect.ts'
import { startEmbedded } from '../src/database/embedded/embedded.ts'
import { sendSignal } from '../src/database/embedded/processes.ts'
import { migrate } from '../src/database/migrate.ts'
import { makeServerFolder, removeLeftovers } from './database-leftovers.ts'

export const TEMPLATE = 'muster_template'

export type TestServer = {
  url: string
  data_dir: string
  stop: () => Promise<void>
  /** For the moment in which the process ends and nothing can be awaited: the folder stays, for the next run to remove. */
  abandon: () => void
}

/** The real server in a temporary folder, with the template made. `stop` removes both. */
export async function startTestServer(): Promise<TestServer> {
  await removeLeftovers()
  const data_dir = await makeServerFolder()
  const remove = (): Promise<void> => rm(data_dir, { recursive: true, force: true })
  try {
    const log = pino({ level: 'warn' }, pino.destination(2))
    // A crash of the machine ends the run and its data; a crash of PostgreSQL loses nothing without fsync.
    const embedded = await startEmbedded({ data_dir, settings: { fsync: 'off' }, log })
    try {
      await makeTemplate(embedded.url)
    } catch (error) {
      await embedded.stop()
      throw error
    }
    return {
      url: embedded.url,
      data_dir,
      stop: () => embedded.stop().finally(remove),
      abandon: () => void sendSignal(embedded.process_id, 'SIGINT'),
    }
  } catch (error) {
    await remove()
    throw error
  }
}

async function makeTemplate(url: string): Promise<void> {
  await administer(url, `create database ${TEMPLATE}`)
  const connection = connect({ url: databaseUrl(url, TEMPLATE), application_name: 'muster-test' })
  try {
    await migrate(connection.db)
    await runMigrations({ pgPool: connection.pool })
  } finally {
    await connection.close()
  }
  // Nobody can be connected to it, so any number of tests can copy it at once.
  await administer(url, `alter database ${TEMPLATE} allow_connections false`)
}

/** The same server, another database. */
export function databaseUrl(url: string, name: string): string {
  return url.replace(/\/[^/?]*(\?|$)/, `/${name}$1`)
}

export async function administer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
