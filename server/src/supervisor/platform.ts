// The platform on this machine, started step by step: the data folder is ours alone, ports are free, PostgreSQL runs, its
// tables are those of this version, the roles serve, the example game plays.
import { join, relative, resolve } from 'node:path'
import type { Logger } from 'pino'
import { hasHttps, mainUrl, publicUrl } from '../config/addresses.ts'
import { type Config, readConfig } from '../config/config.ts'
import type { Role } from '../config/roles.ts'
import { type Connection, connect } from '../database/connect.ts'
import { migrate } from '../database/migrate.ts'
import { createLog } from '../observe/log.ts'
import { credentialsOf } from '../observe/redact.ts'
import { openKeys } from '../tokens/keys.ts'
import { compileOnce } from './compile.ts'
import { clientEnvironment, roleEnvironment } from './environment.ts'
import { deployExample, findExample } from './example.ts'
import { adminToken, makeFolders, requireFinishedRestore } from './folders.ts'
import { type FolderLock, identitiesOf, lockFolder } from './lock.ts'
import { chooseEdgePorts, type PortChoice, requireFreePorts } from './ports.ts'
import { type KeptPostgres, keepPostgres } from './postgres.ts'
import { endPreviousRoles } from './previous.ts'
import { openRoleLog } from './role-log.ts'
import { type KeptRole, keepRole } from './role-process.ts'
import type { StopHow } from './signals.ts'
import type { Step, Terminal } from './terminal.ts'

const SUPERVISOR_CONNECTIONS_MAX = 2

/** What has been started, to be stopped in the reverse order. */
export type Part = { stop: (how: StopHow) => Promise<void> | void; kill?: () => void }

export type Start = {
  env: NodeJS.ProcessEnv
  config: Config
  terminal: Terminal
  parts: Part[]
  /** Aborted when the start is not wanted any more. */
  signal: AbortSignal
  now: () => number
  elapsed: () => number
}

/** The start, step by step. Throws at the first that fails; what was started by then is in `parts`. */
export async function startPlatform(start: Start): Promise<void> {
  const { env, terminal, parts } = start
  const { data_dir } = start.config
  const lock = await inStep(
    terminal,
    'data folder',
    () => takeFolder(start),
    () => shortPath(data_dir),
  )
  const ports = await chooseEdgePorts(start.config, env)
  const config = readConfig({ ...env, ...ports.settings })
  await requireFreePorts(config)

  const ownLog = openRoleLog({ folder: join(data_dir, 'logs'), who: 'supervisor', terminal, elapsed: start.elapsed })
  parts.push({ stop: () => ownLog.close() })
  const to = { write: (line: string) => ownLog.write(line.trimEnd()) }
  const log = createLog({ who: 'supervisor', level: config.log_level, secrets: credentialsOf(config), to })
  try {
    await startParts({ ...start, config }, { lock, ports, log })
  } catch (error) {
    // The person is told in one sentence by whom this is thrown to; here is the rest of it.
    if (!start.signal.aborted) log.info({ err: error }, 'The start failed.')
    throw error
  }
}

async function startParts(
  start: Start,
  { lock, ports, log }: { lock: FolderLock; ports: PortChoice; log: Logger },
): Promise<void> {
  const { env, config, terminal, signal } = start
  const compiled = compileOnce(roleEnvironment(env, config, ports.settings), { signal, log })
  const postgres = await inStep(
    terminal,
    'PostgreSQL',
    () => startDatabase(start, log),
    () => (config.database_url === null ? 'embedded' : 'DATABASE_URL'),
  )
  signal.throwIfAborted()
  const database = connect({
    url: postgres.url,
    application_name: 'muster supervisor',
    connections_max: SUPERVISOR_CONNECTIONS_MAX,
    log,
  })
  try {
    await inStep(
      terminal,
      'tables',
      () => migrate(database.db, log),
      (ran) => (ran.length === 0 ? 'up to date' : `${ran.length} migrated`),
    )
    const admin = adminToken(config, await openKeys(join(config.data_dir, 'keys')), start.now())
    signal.throwIfAborted()

    const resolved = { ...ports.settings, DATABASE_URL: postgres.url }
    await compiled
    signal.throwIfAborted()
    const began = startRoleProcesses(start, {
      env: roleEnvironment(env, config, resolved),
      lock,
      isQuiet: postgres.isDown,
    })
    const steps = began.map(({ kept, step }) =>
      finishStep(step, kept.firstReady, (address) => roleDetail(kept.role, address, config, ports.reasons)),
    )
    await Promise.race([Promise.all(steps), rejectOnAbort(signal)])

    const play_url = await prepareExample(start, database, admin.token, log)
    terminal.table([
      ...(play_url ? [['play', play_url, 'open it in two windows'] as const] : []),
      ['API', mainUrl(config), 'the matchmaker too'],
      ['data folder', shortPath(config.data_dir)],
      ['admin token', `cat ${shortPath(admin.file)}`],
    ])
    if (config.mode === 'development' && config.regions.every(({ capacity }) => capacity.cpu_cores === null)) {
      terminal.say("Development: the machine's cores and memory do not limit how many lobbies run.")
    }
  } finally {
    await database.close()
  }
}

/** The folder is ours, and nobody of its last owner is left. */
async function takeFolder({ config, parts, terminal, now }: Start): Promise<FolderLock> {
  requireFinishedRestore(config.data_dir)
  makeFolders(config.data_dir)
  const lock = lockFolder(config.data_dir, now())
  parts.push({ stop: () => lock.release() })
  const { found, killed } = await endPreviousRoles(lock.previous?.roles ?? [])
  if (found > 0) {
    terminal.say(`${found} processes of a start that was killed have ended${killed > 0 ? `, ${killed} by force` : ''}.`)
  }
  return lock
}

type Postgres = Pick<KeptPostgres, 'url' | 'isDown'>

async function startDatabase({ config, parts, terminal, elapsed }: Start, log: Logger): Promise<Postgres> {
  if (config.database_url !== null) return { url: config.database_url, isDown: () => false }
  const postgres = await keepPostgres({ data_dir: config.data_dir, log, terminal, elapsed })
  parts.push({ stop: () => postgres.stop() })
  return postgres
}

/** All at once; they are stopped in the reverse order of ROLES. */
function startRoleProcesses(
  start: Start,
  options: { env: Record<string, string>; lock: FolderLock; isQuiet: () => boolean },
): { kept: KeptRole; step: Step }[] {
  const { config, parts, terminal, elapsed } = start
  const { env, lock, isQuiet } = options
  const began: { kept: KeptRole; step: Step }[] = []
  const onProcess = (): void => {
    lock.record(identitiesOf(began.map(({ kept }) => kept.pid()).filter((pid) => pid !== null)))
  }
  for (const role of config.roles) {
    const step = terminal.step(role)
    const log = openRoleLog({ folder: join(config.data_dir, 'logs'), who: role, terminal, elapsed, isQuiet })
    const kept = keepRole({ role, env, log, terminal, elapsed, onProcess })
    began.push({ kept, step })
    parts.push({
      stop: async (how) => {
        await kept.stop(how)
        log.close()
      },
      kill: () => kept.kill(),
    })
  }
  onProcess()
  return began
}

/** Where the example is played; null when there is none. Its failure is told, and the platform stays. */
async function prepareExample(start: Start, database: Connection, token: string, log: Logger): Promise<string | null> {
  const { env, config, terminal, signal } = start
  const example = await findExample(config, database.db)
  if (!example.is_wanted) return example.play_url
  const step = terminal.step('example')
  try {
    const play_url = await deployExample(clientEnvironment(env, mainUrl(config), token), signal)
    step.done('deployed')
    return play_url
  } catch (error) {
    step.failed()
    signal.throwIfAborted()
    log.error({ err: error }, 'The example game could not be deployed; the platform runs without it.')
    return null
  }
}

function inStep<T>(
  terminal: Terminal,
  name: string,
  work: () => Promise<T>,
  detail: (result: T) => string,
): Promise<T> {
  return finishStep(terminal.step(name), work(), detail)
}

async function finishStep<T>(step: Step, work: Promise<T>, detail: (result: T) => string): Promise<T> {
  try {
    const result = await work
    step.done(detail(result))
    return result
  } catch (error) {
    step.failed()
    throw error
  }
}

function roleDetail(role: Role, address: string | null, config: Config, reasons: readonly string[]): string {
  if (role !== 'edge') return address ?? ''
  const schemes = hasHttps(config) ? (['http', 'https'] as const) : (['http'] as const)
  const urls = schemes.map((scheme) => publicUrl(config, config.domains.main, scheme)).join(', ')
  return reasons.length === 0 ? urls : `${urls} (${reasons.join(', ')})`
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

/** As a person in this folder would type it. */
function shortPath(path: string): string {
  const short = relative(process.cwd(), path)
  return short === '' || short.startsWith('..') ? resolve(path) : short
}
