// Starts the platform for a bench: the embedded PostgreSQL with fsync on, each role in its own process as in production, in
// a temporary folder and on free ports. The bench is a client. It signs lobby tokens with the keys of the folder.
import { type ChildProcess, fork } from 'node:child_process'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Client, createClient } from '@musterhost/contract/client'
import type { Config } from '@musterhost/server/config'
import { readConfig } from '@musterhost/server/config/read-config'
import { ROLE_FLAGS, ROLES, type Role } from '@musterhost/server/config/roles'
import { connect } from '@musterhost/server/database/connect'
import { startEmbedded } from '@musterhost/server/database/embedded/embedded'
import { sendSignal } from '@musterhost/server/database/embedded/processes'
import { migrate } from '@musterhost/server/database/migrate'
import { createLog } from '@musterhost/server/observe/log'
import { type Keys, openKeys } from '@musterhost/server/tokens/keys'

/** The matchmaker's port lies so far after the first one for metrics. */
const METRICS_OFFSET = ROLES.indexOf('matchmaker')
const PROGRAM = fileURLToPath(import.meta.resolve('@musterhost/server'))

export type BenchPlatform = {
  config: Config
  database: ReturnType<typeof connect>
  keys: Keys
  /** The operator's. */
  token: string
  api: Client
  matchmaker_url: string
  /** The process id of each role that runs. */
  processes: Readonly<Record<string, ChildProcess>>
  stop: () => Promise<void>
}

/** `programs`: the programs that run in place of the platform's own, by role. `makeTables`: the migrations of these. */
export async function startPlatform(
  roles: readonly Role[],
  settings: Record<string, string> = {},
  programs: Partial<Record<Role, string>> = {},
  database_settings: Record<string, string> = {},
  makeTables: typeof migrate = migrate,
): Promise<BenchPlatform> {
  const data_dir = await mkdtemp(join(tmpdir(), 'muster-bench-'))
  const log = createLog({ who: 'bench', level: 'error' })
  const embedded = await startEmbedded({ data_dir, settings: database_settings, log })
  // An error that nobody caught ends the bench without `stop`.
  const endDatabase = (): void => void sendSignal(embedded.process_id, 'SIGINT')
  process.once('exit', endDatabase)
  const database = connect({ url: embedded.url, application_name: 'bench' })
  await makeTables(database.db)
  const [api, matchmaker, lobby_api, edge, edge_https] = await freePorts(5)
  const env = {
    MUSTER_DATA: data_dir,
    DATABASE_URL: embedded.url,
    MUSTER_API_PORT: String(api),
    MUSTER_MATCHMAKER_PORT: String(matchmaker),
    MUSTER_LOBBY_API_PORT: String(lobby_api),
    MUSTER_EDGE_HTTP_PORT: String(edge),
    MUSTER_EDGE_HTTPS_PORT: String(edge_https),
    // None, because two benches would need the same ports.
    MUSTER_METRICS_PORT: '0',
    MUSTER_RATE_LIMIT_SEATS: '0',
    MUSTER_RATE_LIMIT_MATCHMAKER: '0',
    MUSTER_RATE_LIMIT_CLOUD: '0',
    MUSTER_CAPACITY_CORES: '0',
    MUSTER_CAPACITY_MEMORY_MB: '0',
    MUSTER_LOG_LEVEL: 'warn',
    ...settings,
  }
  const children = await Promise.all(roles.map((role) => startRole(role, programs[role] ?? PROGRAM, env)))
  const keys = await openKeys(join(data_dir, 'keys'))
  const token = keys.issue({ kind: 'access', name: 'bench' }, { now_ms: Date.now(), lifetime_ms: null })
  return {
    config: readConfig(env),
    database,
    keys,
    token,
    api: createClient({ url: `http://127.0.0.1:${api}`, token }),
    matchmaker_url: `http://127.0.0.1:${matchmaker}`,
    processes: Object.fromEntries(roles.map((role, index) => [role, children[index]!])),
    async stop() {
      for (const child of children.toReversed()) await stopRole(child)
      await database.close()
      await embedded.stop()
      process.off('exit', endDatabase)
      await rm(data_dir, { recursive: true, force: true })
    },
  }
}

export type FurtherMatchmaker = { pid: number; metrics_port: number; stop: () => Promise<void> }

/** Like a further machine: its own data folder, with the same keys and the same database. */
export async function startMatchmaker({ config }: BenchPlatform, number: number): Promise<FurtherMatchmaker> {
  const data_dir = join(config.data_dir, `matchmaker-${number}`)
  await cp(join(config.data_dir, 'keys'), join(data_dir, 'keys'), { recursive: true })
  const [matchmaker, lobby_api, metrics_port] = await freePorts(3)
  const child = await startRole('matchmaker', PROGRAM, {
    MUSTER_DATA: data_dir,
    DATABASE_URL: config.database_url!,
    MUSTER_MATCHMAKER_PORT: String(matchmaker),
    MUSTER_LOBBY_API_PORT: String(lobby_api),
    MUSTER_METRICS_PORT: String(metrics_port! - METRICS_OFFSET),
    MUSTER_RATE_LIMIT_SEATS: '0',
    MUSTER_RATE_LIMIT_MATCHMAKER: '0',
    MUSTER_CAPACITY_CORES: '0',
    MUSTER_CAPACITY_MEMORY_MB: '0',
    MUSTER_LOG_LEVEL: 'warn',
  })
  return { pid: child.pid!, metrics_port: metrics_port!, stop: () => stopRole(child) }
}

export type FurtherEdge = { pid: number; stop: () => Promise<void> }

/** Beside the edge of a platform whose MUSTER_PROCESS is `0/COUNT`. */
export async function startFurtherEdge(
  { config }: BenchPlatform,
  { number, count }: { number: number; count: number },
): Promise<FurtherEdge> {
  const child = await startRole('edge', PROGRAM, {
    MUSTER_DATA: config.data_dir,
    DATABASE_URL: config.database_url!,
    MUSTER_API_PORT: String(config.api_port),
    MUSTER_MATCHMAKER_PORT: String(config.matchmaker_port),
    MUSTER_EDGE_HTTP_PORT: String(config.edge_http_port),
    MUSTER_EDGE_HTTPS_PORT: String(config.edge_https_port),
    MUSTER_PROCESS: `${number}/${count}`,
    MUSTER_METRICS_PORT: '0',
    MUSTER_LOG_LEVEL: 'warn',
  })
  return { pid: child.pid!, stop: () => stopRole(child) }
}

/** Like the supervisor: ready and stop go over the IPC channel. A role that ends before it is asked to ends the bench. */
function startRole(role: Role, program: string, env: Record<string, string>): Promise<ChildProcess> {
  const { PATH, HOME } = process.env
  const child = fork(program, [], {
    env: { PATH, HOME, ...env, MUSTER_ROLES: role },
    execArgv: [...ROLE_FLAGS[role]],
    stdio: 'inherit',
  })
  return new Promise((resolve, reject) => {
    let is_ready = false
    child.once('exit', (code, signal) => {
      const error = new Error(`${role} ended with ${signal ?? code}`)
      if (is_ready) throw error
      reject(error)
    })
    child.on('message', (message) => {
      const { kind } = message as { kind: string }
      if (kind !== 'ready') return
      is_ready = true
      resolve(child)
    })
  })
}

async function stopRole(child: ChildProcess): Promise<void> {
  child.removeAllListeners('exit')
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.send({ kind: 'stop', end_lobbies: true })
  await ended
}

export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await new Promise((resolve) => server.once('listening', resolve))
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}
