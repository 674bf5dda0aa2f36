// The PostgreSQL that comes with the platform: a child process on a unix socket, its files in the data folder.
// States: (none) -> made -> starting -> ready -> exited. It starts under a lock, so processes of the cluster that are found
// at the start belong to a dead platform. They are ended, a healthy postmaster too: a child of our own has this version's
// settings and reports its end, and a fast shutdown takes less than a second. Nothing acknowledged is lost: fsync is on.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import { StartError } from '../../config/start-error.ts'
import { findAccount, requireReachable } from './account.ts'
import { type Binaries, findBinaries } from './binaries.ts'
import { type Cluster, openCluster, PASSWORD_FILE, ROLE } from './cluster.ts'
import { lockFile } from './lock.ts'
import { type LogFile, openLogFile } from './log-file.ts'
import { endProcesses, readPostmasterFile, readPostmasterId, sendSignal } from './processes.ts'
import { type Account, PROGRAM_ENVIRONMENT } from './program.ts'
import { readSecret } from './secret.ts'
import { openSocketFolder, PORT, removeIfEmpty, SOCKET_FOLDER_FILE } from './socket-folder.ts'

/** Attempts to start PostgreSQL. */
const START_ATTEMPTS_MAX = 3
/** One start of PostgreSQL, with the recovery after a crash, which reads at most about max_wal_size. */
const READY_MS_MAX = 120_000
const READY_POLL_MS = 10
const STOP_STEPS = [
  { signal: 'SIGINT', wait_ms: 10_000 },
  { signal: 'SIGQUIT', wait_ms: 5_000 },
  { signal: 'SIGKILL', wait_ms: 5_000 },
] as const
/** PostgreSQL's error code. */
const INVALID_PASSWORD = '28P01'

const SETTINGS: Record<string, string> = {
  listen_addresses: '',
  port: String(PORT),
  unix_socket_permissions: '0700',
  max_connections: '100',
  shared_buffers: '128MB',
  max_wal_size: '512MB',
  wal_compression: 'on',
  // Commits write the log themselves; what these two do ahead of time may wait, so that an idle server sleeps.
  wal_writer_delay: '2s',
  bgwriter_delay: '1s',
  // Data that is in memory anyway is read at once.
  io_workers: '1',
  // Small machines, small queries.
  jit: 'off',
  max_parallel_workers_per_gather: '0',
  max_logical_replication_workers: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Errors of statements are the caller's to report: here they would fill the file, and show what the statements hold.
  log_min_messages: 'log',
  log_checkpoints: 'off',
  // A statement whose client was killed stops soon.
  ...(process.platform === 'linux' && { client_connection_check_interval: '5s' }),
}

export type ProcessExit = { code: number | null; signal: NodeJS.Signals | null }

export type Embedded = {
  /** The same for the same data folder, over restarts too. Carries the password. */
  url: string
  /** The postmaster. */
  process_id: number
  /** Fast shutdown, then harder ways, at most 20 s. May be called again. Clients are disconnected. */
  stop: () => Promise<void>
  /** When the server has ended, for whichever reason. */
  exited: Promise<ProcessExit>
}

export type EmbeddedOptions = {
  /** The platform's data folder, made when it is missing. The cluster lies in `postgres` under it. */
  data_dir: string
  /** Where the socket lies: a short path, for PostgreSQL's user alone. By default one below the system's temporary folder. */
  run_dir?: string
  /** PostgreSQL settings beside the platform's, or instead of them. For tests and measurements. */
  settings?: Record<string, string>
  log: Logger
}

/**
 * Returns when queries are answered. Throws a StartError when it cannot run here, with the way out: also when
 * another platform that lives uses the same data folder.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  if (process.platform === 'win32') {
    throw new StartError(
      'The embedded PostgreSQL needs unix sockets. On Windows set DATABASE_URL to a PostgreSQL of your own.',
    )
  }
  await mkdir(options.data_dir, { recursive: true, mode: 0o711 })
  const data_dir = await realpath(options.data_dir)
  const lock = lockFile(join(data_dir, 'postgres.lock'))
  if (lock === null) throw new StartError(`The database in ${data_dir} is in use by another platform.`)
  try {
    const embedded = await startLocked({ ...options, data_dir })
    void embedded.exited.then(lock.release)
    return embedded
  } catch (error) {
    lock.release()
    throw error
  }
}

async function startLocked({ data_dir, run_dir, settings, log }: EmbeddedOptions): Promise<Embedded> {
  const binaries = await findBinaries()
  const account = await findAccount(join(data_dir, 'postgres'), log)
  const programs = ['bin', 'lib', 'share'].map((name) => join(binaries.folder, name))
  await requireReachable(account, data_dir, [data_dir, ...programs])
  const cluster = await openCluster(data_dir, binaries, account, log)
  const socket_folder = await openSocketFolder(account, join(data_dir, 'keys', SOCKET_FOLDER_FILE), run_dir)
  const url = urlOf(cluster.password, socket_folder)
  const log_path = join(data_dir, 'postgres.log')

  for (let attempt = 1; ; attempt++) {
    await endProcesses(cluster.folder, account, log)
    await removeForeignLocks(cluster.folder, socket_folder, log)
    const log_file = await openLogFile(log_path, log)
    const server = startServer(binaries, account, cluster, log_file, {
      ...SETTINGS,
      ...settings,
      // A list, in which quotes keep commas and spaces together.
      unix_socket_directories: `"${socket_folder.replaceAll('"', '""')}"`,
    })
    const stop = async (): Promise<void> => {
      await stopServer(server, cluster, account, log)
      if (run_dir === undefined) await removeIfEmpty(socket_folder)
    }
    if (await becomesReady(server, cluster)) {
      await requireAnswer(url).catch(async (error: unknown) => {
        await stop()
        throw error
      })
      return { url, process_id: server.child.pid!, exited: server.exited, stop }
    }
    await stopServer(server, cluster, account, log)
    const said = await log_file.tail()
    if (attempt === START_ATTEMPTS_MAX) throw new Error(`PostgreSQL does not start. The end of ${log_path}:\n${said}`)
    log.warn({ attempt, said }, 'PostgreSQL did not start; trying again')
  }
}

/** Ends what runs on the cluster of the data folder, so that it can be removed. For who holds the folder's lock. */
export async function endEmbedded(data_dir: string, log: Logger): Promise<void> {
  const folder = join(data_dir, 'postgres')
  if (existsSync(folder)) await endProcesses(folder, await findAccount(folder, log), log)
}

/**
 * Where the PostgreSQL of a platform that runs on this data folder answers. Throws a StartError when none has ever run
 * there; whether one does is only told by connecting.
 */
export async function embeddedUrl(data_dir: string): Promise<string> {
  const keys = join(data_dir, 'keys')
  const password = await readSecret(join(keys, PASSWORD_FILE))
  const socket_folder = await readSecret(join(keys, SOCKET_FOLDER_FILE))
  if (password !== null && socket_folder !== null) return urlOf(password, socket_folder)
  throw new StartError(`The platform in ${data_dir} has no database of its own; DATABASE_URL names the one it uses.`)
}

function urlOf(password: string, socket_folder: string): string {
  return `postgres://${ROLE}:${password}@/${ROLE}?host=${encodeURIComponent(socket_folder)}&port=${PORT}`
}

type Server = { child: ChildProcess; exited: Promise<ProcessExit>; hasExited: () => boolean }

function startServer(
  binaries: Binaries,
  account: Account,
  cluster: Cluster,
  log_file: LogFile,
  settings: Record<string, string>,
): Server {
  const child = spawn(
    binaries.postgres,
    ['-D', cluster.folder, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    {
      cwd: cluster.folder,
      env: PROGRAM_ENVIRONMENT,
      stdio: ['ignore', log_file.descriptor, log_file.descriptor],
      // Ctrl-C in a terminal would reach it before the roles that still write.
      detached: true,
      ...(account && { uid: account.uid, gid: account.gid }),
    },
  )
  let ended = false
  const exited = new Promise<ProcessExit>((resolve) => {
    const onEnd = (exit: ProcessExit): void => {
      if (ended) return
      ended = true
      log_file.close()
      resolve(exit)
    }
    child.on('exit', (code, signal) => onEnd({ code, signal }))
    child.on('error', () => {
      if (child.pid === undefined) onEnd({ code: null, signal: null })
    })
  })
  return { child, exited, hasExited: () => ended }
}

/** False when the server has ended before it was ready, or is not ready in time. */
async function becomesReady(server: Server, cluster: Cluster): Promise<boolean> {
  const end = performance.now() + READY_MS_MAX
  while (!server.hasExited() && performance.now() < end) {
    const lines = await readPostmasterFile(cluster.folder)
    if (Number(lines[0]) === server.child.pid && lines[7]?.trim() === 'ready') return true
    await delay(READY_POLL_MS)
  }
  return false
}

/** Throws when a query is not answered: the password file is another one than the cluster was made with. */
async function requireAnswer(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: READY_MS_MAX })
  // Killed meanwhile, it fails the query.
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('select 1')
  } catch (error) {
    const { code } = error as { code?: string }
    if (code !== INVALID_PASSWORD) throw error
    throw new StartError(
      'The file keys/postgres-password in the data folder is not the one that this database was made with. ' +
        'Restore it, or remove it: then a new password is made.',
    )
  } finally {
    await client.end()
  }
}

async function stopServer(server: Server, cluster: Cluster, account: Account, log: Logger): Promise<void> {
  for (const step of STOP_STEPS) {
    if (server.hasExited()) break
    server.child.kill(step.signal)
    const enough = new AbortController()
    await Promise.race([
      server.exited,
      delay(step.wait_ms, undefined, { signal: enough.signal }).catch(() => undefined),
    ])
    enough.abort()
    if (!server.hasExited()) log.warn(`PostgreSQL did not end within ${step.wait_ms} ms of ${step.signal}`)
  }
  // A killed postmaster leaves backends; after an orderly end there are none.
  await endProcesses(cluster.folder, account, log)
}

/**
 * After a restart of the machine or the container, the process id in an old lock may be that of any program, and
 * PostgreSQL would take it for a server that runs. No process of the cluster lives when this is called.
 */
async function removeForeignLocks(folder: string, socket_folder: string, log: Logger): Promise<void> {
  const id = await readPostmasterId(folder)
  if (id === null || !sendSignal(id, 0)) return
  log.warn({ process_id: id }, "removing PostgreSQL's lock: its process id belongs to another program now")
  await rm(join(folder, 'postmaster.pid'), { force: true })
  await rm(join(socket_folder, `.s.PGSQL.${PORT}.lock`), { force: true })
}
