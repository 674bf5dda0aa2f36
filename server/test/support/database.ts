// A fresh database for a test, copied from a migrated template. The run (run.ts) has one server for all files, whose address
// is in TEST_DATABASE_URL. A file that is run alone starts its own server.
import { randomBytes } from 'node:crypto'
import { after, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { databaseUrl, startTestServer, TEMPLATE, type TestServer } from '../run/database-server.ts'

/** What a test that ended gets to close its connections before its database is dropped under them. */
const LEAVE_MS_MAX = 10_000
const LEAVE_POLL_MS = 50

/** The driver's types lack two members of its client. */
type Administration = pg.Client & { ref: () => void; unref: () => void }

// What belongs to the process, not to a test. The server is there for files that are run alone.
let own_server: Promise<TestServer> | undefined
/** The connection that makes and drops all databases of this process: opening one takes PostgreSQL 10 ms of a core. */
let administration: Promise<Administration> | undefined
/** Statements under way on it. */
let statement_count = 0
const drops = new Set<Promise<void>>()

after(async () => {
  await Promise.all(drops)
  const ending = administration
  administration = undefined
  const client = await ending?.catch(() => undefined)
  client?.ref()
  await client?.end()
  await (await own_server)?.stop()
})

/**
 * The url of a migrated, empty database, made in less than 0.1 s. It is dropped after the test, when the test's
 * connections are gone, or have been given ten seconds to go.
 */
export async function createDatabase(t: TestContext): Promise<string> {
  const server_url = await findServer()
  const name = `test_${randomBytes(8).toString('hex')}`
  // Copying files is much faster than copying pages through the log, where fsync is off (database-server.ts).
  await administer(server_url, `create database ${name} template ${TEMPLATE} strategy file_copy`)
  // Hooks run in the order they were set: the test's own ones, which close its connections, come after this one.
  // So dropping goes on beside them, and the end of the file waits for it. What stays ends with the server.
  t.after(() => {
    const drop = dropDatabase(server_url, name)
      .catch((error: unknown) =>
        console.error(`The database ${name} of a test that ended could not be dropped:`, error),
      )
      .finally(() => drops.delete(drop))
    drops.add(drop)
  })
  return databaseUrl(server_url, name)
}

async function findServer(): Promise<string> {
  const shared_url = process.env.TEST_DATABASE_URL
  if (shared_url) return shared_url
  own_server ??= startOwnServer()
  return (await own_server).url
}

async function startOwnServer(): Promise<TestServer> {
  const server = await startTestServer()
  let stopped = false
  // The runner ends a file that is interrupted without its hooks.
  process.once('exit', () => {
    if (!stopped) server.abandon()
  })
  return {
    ...server,
    async stop() {
      await server.stop()
      stopped = true
    },
  }
}

async function dropDatabase(server_url: string, name: string): Promise<void> {
  const end = performance.now() + LEAVE_MS_MAX
  while (performance.now() < end) {
    const { rows } = await administer(server_url, `select 1 from pg_stat_activity where datname = '${name}' limit 1`)
    if (rows.length === 0) break
    await delay(LEAVE_POLL_MS)
  }
  await administer(server_url, `drop database ${name} with (force)`)
}

async function administer(server_url: string, statement: string): Promise<pg.QueryResult> {
  let client: Administration | undefined
  statement_count++
  try {
    administration ??= connectForAll(server_url)
    client = await administration
    client.ref()
    return await client.query(statement)
  } finally {
    statement_count--
    // A process whose tests have ended must not wait for its own connection, and one that waits for a statement must not end.
    if (statement_count === 0) client?.unref()
  }
}

function connectForAll(server_url: string): Promise<Administration> {
  const client = new pg.Client({ connectionString: server_url }) as Administration
  const forget = (): void => {
    if (administration === connection) administration = undefined
  }
  client.on('error', forget)
  client.on('end', forget)
  const connection = client.connect().then(
    () => client,
    (error: unknown) => {
      forget()
      throw error
    },
  )
  return connection
}
