// Connections to PostgreSQL: one bounded pool a process, with Kysely on top. A connection that breaks while idle is
// thrown away and logged; the next query opens another one. One that breaks while somebody holds it is that one's own
// error, of the query under way or of the next. No connection is to a standby, and none stays on a server that another one has
// replaced (primary.ts).
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { Logger } from 'pino'
import { serversOf } from '../text/database-url.ts'
import { GrowingPool } from './growing-pool.ts'
import { isUnreplicated, Primary } from './primary.ts'
import type { Schema } from './schema.ts'
import { explainTls, readTarget, type UrlSetting } from './tls.ts'

/** Connections of a role to the database. */
const CONNECTIONS_MAX = 10
/** Connections that are kept open for the next request. */
const CONNECTIONS_MIN = 1
/**
 * Time of a statement. No statement of the platform takes longer; a migration or a report lifts the limit for its
 * transaction.
 */
const STATEMENT_MS_MAX = 10_000
/** A transaction without a statement is ended by the database after this time. */
const IDLE_IN_TRANSACTION_MS_MAX = 10_000
/**
 * Time to open a connection, in steps. A process that is blocked, as by loading code on a busy machine, reads no response: one
 * step passes for it, however long it is blocked.
 */
const CONNECT_STEP_MS = 1_000
const CONNECT_STEPS_MAX = 5
/** A connection that was unused for this time is closed. */
const IDLE_MS_MAX = 30_000
const KEEP_ALIVE_AFTER_MS = 10_000
/** Time for running queries at the close; then their connections are cut. */
const CLOSE_MS_MAX = 5_000

export type ConnectOptions = {
  /** URL of one server or of several. */
  url: string
  /** How the connection is called in pg_stat_activity. */
  application_name: string
  connections_max?: number
  /** Connections that are kept open for the next request. Default: 1. */
  connections_min?: number
  /** Without one, broken idle connections become process warnings. */
  log?: Logger
}

export type DatabaseConnection = {
  db: Kysely<Schema>
  pool: pg.Pool
  /** The server that the connections are to. */
  primary: Primary
  close: () => Promise<void>
}

/**
 * Opens nothing yet: the first query does. A url may name a unix socket: `postgres://USER:PASSWORD@/NAME?host=/FOLDER`.
 * `close` waits up to 5 s for queries under way, then cuts them off; it may be called again.
 */
export function connect(options: ConnectOptions): DatabaseConnection {
  const primary = new Primary(options)
  const config: PrimaryClientConfig & pg.PoolConfig & { max: number } = {
    ...readTarget(serversOf(options.url)[0]!.url),
    primary,
    application_name: options.application_name,
    max: options.connections_max ?? CONNECTIONS_MAX,
    // A burst opens more than are used afterwards, and each is a process with some MB. The one that was used last is used
    // again, so those of a busy role stay. Only opening one is timed (below): that would be a timer for every query.
    idleTimeoutMillis: IDLE_MS_MAX,
    min: options.connections_min ?? CONNECTIONS_MIN,
    connectionTimeoutMillis: 0,
    Client: PrimaryClient,
    statement_timeout: STATEMENT_MS_MAX,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS_MAX,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    types: { getTypeParser },
  }
  const pool = new GrowingPool(config)
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
    await primary.close()
  }
  return {
    db: new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) }),
    pool,
    primary,
    close: () => {
      closed ??= close()
      return closed
    },
  }
}

/** `setting`: where its URL was written, `DATABASE_URL` by default. */
type PrimaryClientConfig = pg.ClientConfig & { primary?: Primary; setting?: UrlSetting }
type ConnectCallback = (error: Error | undefined) => void

/** A connection to the server that accepts writes. It ends when that server is none any more. */
export class PrimaryClient extends pg.Client {
  readonly #primary: Primary | undefined
  readonly #setting: UrlSetting

  constructor({ primary, setting = 'DATABASE_URL', ...config }: PrimaryClientConfig = {}) {
    super({ ...config, connectionTimeoutMillis: 0 })
    this.#primary = primary
    this.#setting = setting
    // The pool listens only while a connection is idle, and an event that nobody hears ends the process.
    this.on('error', () => undefined)
    this.on('notice', (notice) => {
      if (isUnreplicated(notice)) this.#cut(unknownOutcome())
    })
  }

  override connect(): Promise<this>
  override connect(callback: ConnectCallback): void
  override connect(callback?: ConnectCallback): Promise<this> | undefined {
    const opening = this.#open()
    if (callback === undefined) return opening
    opening.then(() => callback(undefined), callback)
    return undefined
  }

  async #open(): Promise<this> {
    const server = (await this.#primary?.find()) ?? null
    if (server !== null) Object.assign(this, { host: server.host, port: server.port })
    const reported = new Map<string, string>()
    this.connection.on('parameterStatus', (message: { parameterName: string; parameterValue: string }) =>
      reported.set(message.parameterName, message.parameterValue),
    )
    let step_count = 0
    const limit = setInterval(() => {
      if (++step_count === CONNECT_STEPS_MAX) this.#cut(new Error('timeout expired'))
    }, CONNECT_STEP_MS).unref()
    try {
      await super.connect()
      if (await this.#isReadOnly(reported)) throw readOnly()
    } catch (cause) {
      const error = explainTls(cause, this, this.#setting)
      this.#primary?.doubt(server, error)
      this.#cut(error as Error)
      throw error
    } finally {
      clearInterval(limit)
    }
    const leave = this.#primary?.join(server, (error) => this.#cut(error))
    this.once('end', () => leave?.())
    this.connection.on('errorMessage', (message: { code?: string }) => {
      if (message.code !== READ_ONLY) return
      this.#primary?.doubt(server, readOnly())
      this.#cut(readOnly())
    })
    return this
  }

  /** PostgreSQL reports it when a connection begins. A pooler between does not, and is asked. */
  async #isReadOnly(reported: ReadonlyMap<string, string>): Promise<boolean> {
    const is_standby = reported.get('in_hot_standby')
    if (is_standby !== undefined) return is_standby === 'on' || reported.get('default_transaction_read_only') === 'on'
    const { rows } = await this.query("select current_setting('transaction_read_only')::boolean as is_read_only")
    return rows[0].is_read_only
  }

  /** The query under way fails with this error, even if its success is already in the buffer of the driver. */
  #cut(error: Error): void {
    if (this.connection.stream.destroyed) return
    this.connection.emit('error', error)
    this.connection.stream.destroy()
  }
}

const READ_ONLY = '25006'

function readOnly(): Error {
  return Object.assign(new Error('the server accepts no writes: a standby, or read-only'), { code: '57P03' })
}

/** The SQLSTATE of a transaction of unknown outcome. */
function unknownOutcome(): Error {
  const message = 'the commit was not replicated: its wait for a standby was cancelled'
  return Object.assign(new Error(message), { code: '08007' })
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
