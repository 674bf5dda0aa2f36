// The PostgreSQL of a test run: the real one, in a temporary folder, with a template database that is migrated. A run also keeps
// the files of its PostgreSQL as they were before the first test (support/made-cluster.ts).
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runMigrations } from 'graphile-worker'
import pg from 'pg'
import pino from 'pino'
import { connect } from '../../src/database/connect.ts'
import { PASSWORD_FILE, ROLE } from '../../src/database/embedded/cluster.ts'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import { migrate } from '../../src/database/migrate.ts'
import { clearDeadRuns, clearOutside } from '../leftovers/clear.ts'
import { makeRunFolder, type RunFolder, removeFolder } from '../leftovers/run.ts'

export const TEMPLATE = 'muster_template'

/**
 * A crash of the machine ends the run and its data; a crash of PostgreSQL loses nothing without fsync and whole pages. Every test
 * opens connections, and each maps the shared buffers. Hundreds of databases live for seconds: a worker for each would clean nothing.
 */
const SETTINGS = { fsync: 'off', full_page_writes: 'off', shared_buffers: '32MB', autovacuum: 'off' }

const copy = promisify(execFile)

/** Lines printed about what was left. */
const LINES_SHOWN_MAX = 30

export type TestServer = {
  url: string
  data_dir: string
  /** The mark on what tests make outside of the folder. */
  mark: string
  stop: () => Promise<void>
  /** The same at the end of a run: also ends and removes what the tests of the run left, and prints it. */
  stopRun: () => Promise<void>
  /** For the moment in which the process ends and nothing can be awaited: the folder stays, for the next run to remove. */
  abandon: () => void
}

/**
 * The real server in a temporary folder, with the template made. What dead runs left is removed before. `cluster`: the folder
 * that gets a copy of the server's files.
 */
export async function startTestServer({ cluster }: { cluster?: string } = {}): Promise<TestServer> {
  show('dead test runs left', await clearDeadRuns())
  const folder = await makeRunFolder()
  const { path: data_dir, mark } = folder
  try {
    const log = pino({ level: 'warn' }, pino.destination(2))
    const start = () => startEmbedded({ data_dir, settings: SETTINGS, log })
    let embedded = await start()
    try {
      await migrateAll(embedded.url)
      if (cluster !== undefined) {
        await embedded.stop()
        await copyClusterFrom(data_dir, join(data_dir, cluster))
        embedded = await start()
      }
      await makeTemplate(embedded.url)
    } catch (error) {
      await embedded.stop()
      throw error
    }
    return {
      url: embedded.url,
      data_dir,
      mark,
      stop: () => embedded.stop().finally(() => remove(folder)),
      stopRun: () => embedded.stop().finally(() => endRun(folder)),
      abandon: () => void sendSignal(embedded.process_id, 'SIGINT'),
    }
  } catch (error) {
    await remove(folder)
    throw error
  }
}

/** A run whose files use no database. */
export type RunWithoutServer = Pick<TestServer, 'data_dir' | 'mark' | 'stopRun'> & { url: null }

/** The folder and the mark of a run, without a server. What dead runs left is removed before. */
export async function startRunWithoutServer(): Promise<RunWithoutServer> {
  show('dead test runs left', await clearDeadRuns())
  const folder = await makeRunFolder()
  return { url: null, data_dir: folder.path, mark: folder.mark, stopRun: () => endRun(folder) }
}

async function remove({ path, release }: RunFolder): Promise<void> {
  await removeFolder(path)
  release()
}

async function endRun(folder: RunFolder): Promise<void> {
  show('tests of this run left', await clearOutside({ mark: folder.mark, folders: [folder.path] }))
  await remove(folder)
}

function show(what: string, lines: readonly string[]): void {
  if (lines.length === 0) return
  const more = lines.length > LINES_SHOWN_MAX ? [`and ${lines.length - LINES_SHOWN_MAX} more`] : []
  console.error([`Removed what ${what}:`, ...lines.slice(0, LINES_SHOWN_MAX), ...more].join('\n  '))
}

/** Makes all tables in the server's own database. */
async function migrateAll(url: string): Promise<void> {
  const connection = connect({ url, application_name: 'muster-test' })
  try {
    await migrate(connection.db)
    await runMigrations({ pgPool: connection.pool })
  } finally {
    await connection.close()
  }
  // A copy has its pages ready.
  await administer(url, 'vacuum (freeze, analyze)')
}

/** The server has ended. The files keep their owner, who is the user of PostgreSQL. */
async function copyClusterFrom(data_dir: string, folder: string): Promise<void> {
  await mkdir(join(folder, 'keys'), { recursive: true, mode: 0o700 })
  await copy('cp', ['-a', join(data_dir, 'postgres'), folder])
  await copy('cp', ['-a', join(data_dir, 'keys', PASSWORD_FILE), join(folder, 'keys')])
}

/** A copy of the server's own database. */
async function makeTemplate(url: string): Promise<void> {
  await administer(url, `create database ${TEMPLATE} strategy file_copy template ${ROLE}`)
  // A copy has the files from which a backend reads the catalog at its start: the next connection writes these.
  await administer(databaseUrl(url, TEMPLATE), 'select 1')
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
