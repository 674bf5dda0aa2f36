// Config -> Context. The only file that chooses technologies. It is closed in the reverse order of its opening.
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import { ClientShare } from './addresses/client-share.ts'
import type { Config } from './config/config.ts'
import { StartError } from './config/start-error.ts'
import { connect } from './database/connect.ts'
import { createListener, type Listener } from './database/listen.ts'
import type { Primary } from './database/primary.ts'
import { processName } from './database/process-name.ts'
import { createRevoked, type Revoked } from './database/revoked.ts'
import type { Schema } from './database/schema.ts'
import { createLobbyLogs, type LobbyChannels } from './lobby-logs/open.ts'
import { openLinkedObjects } from './objects/linked.ts'
import type { Objects } from './objects/objects.ts'
import { openObjects } from './objects/open.ts'
import { createHealth, type Health } from './observe/health.ts'
import { createLog } from './observe/log.ts'
import { createMetrics, type Metrics } from './observe/metrics.ts'
import { createRecorder, type Recorder } from './observe/recorder.ts'
import { credentialsOf } from './observe/redact.ts'
import { createTraceExport } from './observe/trace-export.ts'
import { type CertificateAuthorities, readCertificateAuthorities } from './outbound/certificate-authorities.ts'
import { CLIENT_MAILS_MAX, createMailer, MAILS_MAX, type Mailer } from './outbound/mail.ts'
import { type CertificateKeys, linkedCertificateKeys, ownCertificateKeys } from './tokens/certificate-keys.ts'
import { createKeys, type Keys, openKeys } from './tokens/keys.ts'
import { openLinkedKeys } from './tokens/linked-keys.ts'
import { type CredentialSource, linkedCredentials, ownCredentials } from './tokens/lobby-credentials.ts'
import { RING_READ_MS } from './tokens/ring.ts'
import { createSeals, openSeals, type Seals } from './tokens/seals.ts'
import { createTokenUses, type TokenUses } from './tokens/token-uses.ts'
import { CHANNELS } from './wire/channels.ts'

export type Database = Kysely<Schema>

export type Context = {
  config: Config
  db: Database
  /** The pool under `db`, for prepared statements on the hot path. */
  pool: Pool
  /** The server that the connections of `pool` are to. */
  primary: Primary
  /** Wake-ups by NOTIFY: never the only way to learn of a change. */
  listener: Listener
  keys: Keys
  /** Issues the tokens and opens the secrets that lobbies of this machine start with. */
  lobby_credentials: CredentialSource
  /** Opens the keys of certificates that the edge serves. */
  certificate_keys: CertificateKeys
  /** Seals and opens secrets that the database stores. */
  seals: Seals
  /** The tokens that are not valid any more, whatever their signature says. */
  revoked: Revoked
  token_uses: TokenUses
  /** Certificate authorities that outgoing calls trust. */
  trust: CertificateAuthorities
  /** What lobbies have written. */
  lobby_logs: LobbyChannels
  objects: Objects
  /** What becomes of the rays of requests. */
  recorder: Recorder
  /** What the operator watches. */
  metrics: Metrics
  health: Health
  /** Null: no mail server is configured. */
  mailer: Mailer | null
  /**
   * The wall clock, in milliseconds since the epoch. For instants: what is shown, stored, or compared with another machine's
   * time or a token's expiry. An operator or NTP may step it, in either direction.
   */
  now: () => number
  /**
   * The monotonic clock, in whole milliseconds since some moment of this process. For durations: timeouts, ages, pauses, rates.
   * It never steps, and means nothing outside this process.
   */
  elapsed: () => number
  log: Logger
  close: () => Promise<void>
}

/** `now` and `elapsed`: the clocks of a test. */
export type ContextOptions = { log?: Logger; now?: () => number; elapsed?: () => number }

/** A role that has been started. `address` is where it listens (`http://host:port`), null when it listens nowhere. */
export type RunningRole = {
  address: string | null
  /** Resolves when another process of the role has taken over. Absent: none does. */
  handed_over?: Promise<void>
  /** Resolves when also what could not be taken over has ended. */
  retired?: Promise<void>
  stop(how: { end_lobbies: boolean }): Promise<void>
}

/**
 * Opens the data folder's keys and objects and the database of `config.database_url`. Throws a StartError without one:
 * the embedded PostgreSQL is the supervisor's, which passes its address down.
 */
export async function openContext(config: Config, options: ContextOptions = {}): Promise<Context> {
  if (config.database_url === null) {
    throw new StartError(
      'DATABASE_URL must be set to run roles without the supervisor; `npm start` brings a PostgreSQL of its own.',
    )
  }
  const who = config.roles.join(',')
  const log = options.log ?? createLog({ who, level: config.log_level, secrets: credentialsOf(config) })
  await using opened = new AsyncDisposableStack()

  const { link } = config
  const keys = await openOwnKeys(config)
  const seals = link === null ? await openSeals(join(config.data_dir, 'keys')) : createSeals()
  const reading = setInterval(() => {
    Promise.all([keys.refresh(), seals.refresh()]).catch((error: unknown) =>
      log.warn({ err: error }, 'a key ring cannot be read; the old one holds'),
    )
  }, RING_READ_MS)
  opened.defer(() => clearInterval(reading))
  const now = options.now ?? Date.now
  const trust = readCertificateAuthorities(config.fetch_authorities)
  const objects = link === null ? openObjects(config, { now, trust }) : openLinkedObjects(link)
  opened.defer(() => objects.close())
  const database = connect({
    url: config.database_url,
    application_name: processName(config.roles, config.node_id, config.process.number),
    // After a rest a find must not wait for a heartbeat's commit. The other roles are asked for nothing so urgent.
    connections_min: config.roles.includes('matchmaker') ? 2 : 1,
    log,
  })
  opened.defer(() => database.close())
  const listener =
    config.database_listen_url === null
      ? createListener({ url: config.database_url, primary: database.primary, log })
      : createListener({ url: config.database_listen_url, log, setting: 'MUSTER_DATABASE_LISTEN_URL' })
  opened.defer(() => listener.close())
  const metrics = createMetrics(config)
  metrics.gauge('database_connections', 'Connections to the database, by what they do.', ['state'], (set) => {
    const { totalCount, idleCount } = database.pool
    set(idleCount, 'idle')
    set(totalCount - idleCount, 'busy')
  })
  metrics.gauge('database_waiting', 'Queries that wait for a connection.', [], (set) => set(database.pool.waitingCount))
  const health = createHealth()
  // Games go on without it, and their players must reach them.
  if (config.roles.some((role) => role !== 'edge')) {
    health.needs('database', async () => (await database.pool.query('select 1')).rowCount === 1)
  }
  const revoked = createRevoked({ pool: database.pool, listener, log })
  opened.defer(() => revoked.close())
  const token_uses = createTokenUses({ pool: database.pool, log })
  opened.defer(() => token_uses.close())
  const elapsed = options.elapsed ?? (() => Math.trunc(performance.now()))
  const recorder = createRecorder({ pool: database.pool, log, now, rays_per_second: config.rays_per_second })
  opened.defer(() => recorder.close())
  if (config.otlp !== null) {
    const traces = createTraceExport(config.otlp, { log, elapsed })
    opened.defer(() => traces.close())
    opened.defer(recorder.onRay(traces.take))
  }
  // Somebody wants to read them.
  opened.defer(listener.on(CHANNELS.rays, () => void recorder.flush()))

  const lobby_logs = createLobbyLogs({ config, pool: database.pool, listener, log })
  opened.defer(() => lobby_logs.close())

  const closing = opened.move()
  return {
    config,
    db: database.db,
    pool: database.pool,
    primary: database.primary,
    listener,
    keys,
    lobby_credentials: link === null ? ownCredentials(keys, seals, database.pool, now) : linkedCredentials(link),
    seals,
    certificate_keys: link === null ? ownCertificateKeys(seals) : linkedCertificateKeys(link),
    revoked,
    token_uses,
    trust,
    lobby_logs,
    objects,
    recorder,
    metrics,
    health,
    mailer: openMailer(config),
    now,
    elapsed,
    log,
    close: () => closing.disposeAsync(),
  }
}

/** A node that has joined has no keys of the platform: those in memory prove nothing to it. Its edge has those of player tokens. */
function openOwnKeys({ link, roles, data_dir }: Config): Promise<Keys> {
  if (link === null) return openKeys(join(data_dir, 'keys'))
  return roles.includes('edge') ? openLinkedKeys(link) : Promise.resolve(createKeys())
}

function openMailer({ mail }: Config): Mailer | null {
  if (mail === null) return null
  const share = new ClientShare({ slots_max: MAILS_MAX, client_max: CLIENT_MAILS_MAX })
  return createMailer({ url: mail.smtp_url, from: mail.from, share })
}
