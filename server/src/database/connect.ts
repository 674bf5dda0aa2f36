// Connections to PostgreSQL: one bounded pool a process, with Kysely on top. A connection that breaks while idle is
// thrown away and logged; the next query opens another one. One that breaks while somebody holds it is that one's own
// error, of the query under way or of the next.
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { Logger } from 'pino'
import type { Schema } from './schema.ts'

/** Connections of a role to the database. */
const CONNECTIONS_MAX = 10
/** Kept open for the next request. */
const CONNECTIONS_MIN = 2
/** Nothing the platform asks takes longer; a migration or a report lifts it for its own transaction. */
const STATEMENT_MS_MAX = 10_000
/** A transaction without a statement is ended by the database after this time. */
const IDLE_IN_TRANSACTION_MS_MAX = 10_000
/** To open a connection. */
const CONNECT_MS_MAX = 5_000
/** A connection that was unused for this time is closed. */
const IDLE_MS_MAX = 30_000
const KEEP_ALIVE_AFTER_MS = 10_000
/** Time for running queries at the close; then their connections are cut. */
const CLOSE_MS_MAX = 5_000

export type ConnectOptions = {
  url: string
  /** How the connection is called in pg_stat_activity. */
  application_name: string
  connections_max?: number
  /** Without one, broken idle connections become process warnings. */
  log?: Logger
}

export type Connection = { db: Kysely<Schema>; pool: pg.Pool; close: () => Promise<void> }

/**
 * Opens nothing yet: the first query does. A url may name a unix socket: `postgres://USER:PASSWORD@/NAME?host=/FOLDER`.
 * `close` waits up to 5 s for queries under way, then cuts them off; it may be called again.
 */
export function connect(options: ConnectOptions): Connection {
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: options.application_name,
    max: options.connections_max ?? CONNECTIONS_MAX,
    // A burst opens more than are used afterwards, and each is a process with some MB. The one that was used last is used
    // again, so those of a busy role stay. Only opening one is timed (below): that would be a timer for every query.
    idleTimeoutMillis: IDLE_MS_MAX,
    min: CONNECTIONS_MIN,
    connectionTimeoutMillis: 0,
    Client: TimedClient,
    statement_timeout: STATEMENT_MS_MAX,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS_MAX,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    types: { getTypeParser },
  })
  pool.on('error', (error) => {
    if (options.log) options.log.warn({ err: error }, 'a database connection broke')
    else process.emitWarning(`A database connection broke: ${error.message}`)
  })

  const clients = new Set<pg.PoolClient>()
  pool.on('connect', (client) => void clients.add(client))
  pool.on('remove', (client) => void clients.delete(client))

  let closed: Promise<void> | undefined
  const close = async (): Promise<void> => {
    const cut = setTimeout(() => {
      // A client that is in the middle of a query ends by cutting its socket, and the query is rejected.
      for (const client of clients) void (client as unknown as pg.Client).end()
    }, CLOSE_MS_MAX)
    await pool.end()
    clearTimeout(cut)
  }
  return {
    db: new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) }),
    pool,
    close: () => {
      closed ??= close()
      return closed
    },
  }
}

class TimedClient extends pg.Client {
  constructor(config: pg.ClientConfig = {}) {
    super({ ...config, connectionTimeoutMillis: CONNECT_MS_MAX })
    // The pool listens only while a connection is idle, and an event that nobody hears ends the process.
    this.on('error', () => undefined)
  }
}

const { INT8 } = pg.types.builtins
const INT8_ARRAY = 1016
const TEXT_ARRAY: number = 1009
const parseTextArray = pg.types.getTypeParser(TEXT_ARRAY) as (text: string) => (string | null)[]

/** The driver's own parsers, but bigint is a number. Of this pool only: other users of the driver keep theirs. */
function getTypeParser(type: number, format?: 'text' | 'binary'): unknown {
  if (type === INT8 && format !== 'binary') return parseInt8
  if (type === INT8_ARRAY && format !== 'binary') return parseInt8Array
  return pg.types.getTypeParser(type, format as 'text')
}

function parseInt8(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`A bigint is ${text}; by policy it stays below 2^53.`)
  return value
}

function parseInt8Array(text: string): (number | null)[] {
  return parseTextArray(text).map((item) => (item === null ? null : parseInt8(item)))
}
