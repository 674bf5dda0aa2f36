// Starts the platform on this machine, step by step: lock the data folder, choose free ports, start PostgreSQL, migrate its
// tables, start the roles, deploy the example game.
import { existsSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { createSignInLink } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { send } from '@musterhost/contract/node-send'
import type { Logger } from 'pino'
import { hasHttps, httpsWarning, mainUrl, publicUrl } from '../config/addresses.ts'
import { writeChosenPorts } from '../config/chosen-ports.ts'
import type { Config } from '../config/config.ts'
import { instanceName, PROCESSES_MAX, type ProcessNumber } from '../config/processes.ts'
import { readConfig } from '../config/read-config.ts'
import type { Role } from '../config/roles.ts'
import { connect, type DatabaseConnection } from '../database/connect.ts'
import { migrate } from '../database/migrate.ts'
import { processName } from '../database/process-name.ts'
import { createLog } from '../observe/log.ts'
import { credentialsOf } from '../observe/redact.ts'
import { openKeys } from '../tokens/keys.ts'
import { HAND_OVER_BEFORE, handOver, thisProgram } from '../wire/compatibility.ts'
import { commandFolder } from '../wire/platform-version.ts'
import { compileOnce } from './compile.ts'
import { clientEnvironment, roleEnvironment } from './environment.ts'
import { deployExample, findExample } from './example.ts'
import { adminFile, adminToken, hasJoined, makeFolders, requireFinishedRestore } from './folders.ts'
import { InheritedProcesses } from './inherited-processes.ts'
import { type FolderLock, identitiesOf, lockFolder } from './lock.ts'
import { logPath } from './log-file.ts'
import { endOrphanedRoles } from './orphaned-roles.ts'
import { chooseEdgePorts, type PortChoice, requireFreePorts } from './ports.ts'
import { openRoleLog } from './role-log.ts'
import type { StartedPart } from './started-part.ts'
import type { StopHow } from './stop-request.ts'
import { type SupervisedPostgres, supervisePostgres } from './supervised-postgres.ts'
import { type SupervisedRole, superviseRole } from './supervised-role.ts'
import type { Step, SupervisorTerminal } from './terminal.ts'
import { logLine, type Running, sentence } from './upgrade/replace-program.ts'
import { readWayBack, removeWayBack, type WayBack, wayBackFile } from './upgrade/way-back.ts'

/** Connections to the database, for the migration and the example. */
const SUPERVISOR_CONNECTIONS_MAX = 2
/** How long processes may take to stop that this start has no successors for. */
const LEFT_STOP_MS_MAX = 25_000

export type Start = {
  env: NodeJS.ProcessEnv
  config: Config
  terminal: SupervisorTerminal
  parts: StartedPart[]
  /** Aborted when the start is no longer wanted. */
  signal: AbortSignal
  /** Stops everything that was started. */
  stop: (how: StopHow) => void
  now: () => number
  elapsed: () => number
}

/** Throws at the first step that fails. The parts started by then are in `parts`. */
export async function startPlatform(start: Start): Promise<Running> {
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
  // The roles of the version before still have them.
  if (!lock.is_continued) await requireFreePorts(config)

  const own_log = openRoleLog({ folder: join(data_dir, 'logs'), who: 'supervisor', terminal, elapsed: start.elapsed })
  parts.push({ stop: () => own_log.close() })
  const to = { write: (line: string) => own_log.write(line.trimEnd()) }
  const log = createLog({ who: 'supervisor', level: config.log_level, secrets: credentialsOf(config), to })
  const refusal = refusalOf(start, lock, log)
  try {
    await startParts({ ...start, config }, { lock, ports, log })
    return { lock, log, program: thisProgram(), settings: ports.settings, has_joined: false, refusal }
  } catch (error) {
    // The caller shows one sentence of it; the log gets the whole error.
    if (!start.signal.aborted) log.info({ err: error }, 'start failed')
    throw error
  }
}

const FAILED_UPGRADE = 'upgrade failed; the version before starts its roles again'

/** Null: this start does not lead back from an upgrade. It removes the way back, unless it is the next program of an upgrade. */
function refusalOf({ config: { data_dir }, terminal }: Start, lock: FolderLock, log: Logger): Running['refusal'] {
  const file = wayBackFile(data_dir)
  const way_back = lock.is_continued ? readWayBack(file) : null
  if (way_back !== null && way_back.reason === null) return null
  removeWayBack(file)
  if (way_back === null) return null
  const { to_version, from_version, request_id } = way_back as WayBack
  const cause = sentence(way_back.reason ?? '')
  log.error({ version: to_version, cause }, FAILED_UPGRADE)
  terminal.warn('upgrade', `${to_version} did not start: ${cause} ${from_version} runs again.`)
  const reason =
    `Version ${to_version} did not start: ${cause} All roles run ${from_version} again; lobbies and players were kept. ` +
    `${logLine(data_dir, FAILED_UPGRADE)} Remove the cause, and run muster upgrade again.`
  return { request_id, reason }
}

async function startParts(
  start: Start,
  { lock, ports, log }: { lock: FolderLock; ports: PortChoice; log: Logger },
): Promise<void> {
  const { env, config, terminal, parts, signal } = start
  const failed = new AbortController()
  const while_wanted = AbortSignal.any([signal, failed.signal])
  const compiled = compileOnce(roleEnvironment(env, config, ports.settings), { signal: while_wanted, log })
  parts.push({
    async stop() {
      failed.abort()
      await compiled
    },
  })
  const postgres = await inStep(
    terminal,
    'PostgreSQL',
    () => startDatabase(start, log),
    () => (config.database_url === null ? 'embedded' : 'DATABASE_URL'),
  )
  signal.throwIfAborted()
  const database = connect({
    url: postgres.url,
    application_name: processName(['supervisor'], config.node_id),
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
    await recordVersion(database, config.node_id, start.now())
    const is_first = !existsSync(adminFile(config.data_dir))
    writeChosenPorts(config.data_dir, ports.settings)
    const admin = adminToken(config, await openKeys(join(config.data_dir, 'keys')), start.now())
    signal.throwIfAborted()

    const resolved = { ...ports.settings, DATABASE_URL: postgres.url }
    await compiled
    signal.throwIfAborted()
    const before = lock.is_continued ? (lock.previous?.program ?? null) : null
    const is_plain = before !== null && !handOver(before.hand_over ?? HAND_OVER_BEFORE, thisProgram().hand_over)
    if (is_plain) {
      log.warn({ version: before.version }, 'edge of the version before shares no hand-over; its connections break')
    }
    const steps = startRoleProcesses(start, {
      is_plain,
      ...{ env: roleEnvironment(env, config, resolved), lock, isQuiet: postgres.isDown },
      detailOf: (role, address) => roleDetail(role, address, config, ports.reasons),
    })
    await Promise.race([steps, rejectOnAbort(signal)])

    const sign_in_url = is_first ? await signInUrl(config, admin.token, log) : null
    const play_url = await prepareExample(start, database, admin.token, log)
    const lacks_https = httpsWarning(config)
    if (lacks_https !== null) terminal.warn('https', lacks_https)
    terminal.table([
      ...(play_url ? [['play', play_url, 'open it in two windows'] as const] : []),
      [
        'API',
        lacks_https === null ? mainUrl(config) : publicUrl(config, config.domains.main, 'http'),
        'the matchmaker too',
      ],
      ...(sign_in_url ? [['sign in', sign_in_url, 'good once, within an hour'] as const] : []),
      ['data folder', shortPath(config.data_dir)],
      ['admin token', `cat ${shortPath(admin.file)}`],
      ...commandRows(commandFolder()),
    ])
    if (config.mode === 'development' && config.node_capacity.cpu_cores === null) {
      terminal.say("Development: the machine's cores and memory do not limit how many lobbies run.")
    }
  } finally {
    await database.close()
  }
}

/** A link that signs the operator in once. Null when the api gives none: the admin token signs in too. */
async function signInUrl(
  { roles, internal_host, api_port }: Config,
  token: string,
  log: Logger,
): Promise<string | null> {
  if (!roles.includes('api')) return null
  try {
    const client = createClient({ url: `http://${internal_host}:${api_port}`, token, send })
    return (await client.call(createSignInLink, {})).url
  } catch (error) {
    log.warn({ err: error }, 'no sign-in link could be made; the admin token signs in')
    return null
  }
}

/** Which program the node runs, for an upgrade of the other nodes. */
async function recordVersion({ db }: DatabaseConnection, node_id: string, now_ms: number): Promise<void> {
  const { version, wire_version } = thisProgram()
  const row = { version, wire_version, start_ts: new Date(now_ms) }
  await db
    .insertInto('node_versions')
    .values({ node_id, ...row })
    .onConflict((conflict) => conflict.column('node_id').doUpdateSet(row))
    .execute()
}

/** Locks the folder, and waits until no process of its last owner lives. */
export async function takeFolder({ config, parts, terminal, now }: Start): Promise<FolderLock> {
  requireFinishedRestore(config.data_dir)
  makeFolders(config.data_dir)
  const lock = lockFolder(config.data_dir, now())
  parts.push({ stop: () => lock.release() })
  lock.record({ program: { ...thisProgram(), is_ready: false, has_joined: hasJoined(config.data_dir) } })
  if (lock.is_continued) return lock
  const { found, killed } = await endOrphanedRoles([
    ...(lock.previous?.roles ?? []),
    ...(lock.previous?.retiring ?? []),
  ])
  if (found > 0) {
    terminal.say(`${found} processes of a start that was killed have ended${killed > 0 ? `, ${killed} by force` : ''}.`)
  }
  return lock
}

type Postgres = Pick<SupervisedPostgres, 'url' | 'isDown'>

async function startDatabase({ config, parts, terminal, elapsed }: Start, log: Logger): Promise<Postgres> {
  if (config.database_url !== null) return { url: config.database_url, isDown: () => false }
  const postgres = await supervisePostgres({ data_dir: config.data_dir, log, terminal, elapsed })
  parts.push({ stop: () => postgres.stop() })
  return postgres
}

type RoleProcessesOptions = {
  env: Record<string, string>
  lock: FolderLock
  isQuiet: () => boolean
  /** The edge of the version before hands nothing over. */
  is_plain?: boolean
  /** What the step of a role shows. */
  detailOf: (role: Role, address: string | null) => string
}

/**
 * Starts all roles at once. Where processes of the version before run on, one after the other takes over from them, so that
 * most of the platform responds at any time. Resolves when all are ready. They are stopped in the reverse order of ROLES.
 */
export async function startRoleProcesses(start: Start, options: RoleProcessesOptions): Promise<void> {
  const { config, parts, terminal, elapsed } = start
  const { env, lock, isQuiet, detailOf, is_plain = false } = options
  const started: SupervisedRole[] = []
  const onProcess = (): void => recordProcesses(lock, started, inherited)
  const instances = instancesOf(config, keptEdges(start, lock))
  const inherited = lock.is_continued ? inheritedBy(lock, instances, () => onProcess()) : null
  const has_way_back = readWayBack(wayBackFile(config.data_dir)) !== null
  const steps: Promise<unknown>[] = []
  for (const { role: of_role, number } of instances) {
    // What the first process makes in the data folder, the others find there.
    if (number.number > 0) await Promise.race([firstOf(started, of_role)?.first_ready, rejectOnAbort(start.signal)])
    start.signal.throwIfAborted()
    const name = instanceName(of_role, number.number)
    const step = terminal.step(name)
    const log = openRoleLog({ folder: join(config.data_dir, 'logs'), who: name, terminal, elapsed, isQuiet })
    const taking = { inherited: inherited?.get(name) ?? null, is_plain, has_way_back }
    const role = superviseRole({ role: of_role, number, env, log, terminal, elapsed, onProcess, ...taking })
    started.push(role)
    parts.push({
      stop: async (how) => {
        await role.stop(how)
        log.close()
      },
      kill: () => role.kill(),
      restart: (program, how) => role.restart(program, how),
      stay: (log_folder) => role.stay(logPath(log_folder, name)),
    })
    onProcess()
    const finished = finishStep(step, role.first_ready, (address) => detailOf(of_role, address))
    if (inherited !== null) await finished
    steps.push(finished)
  }
  await Promise.all(steps)
  // This start has fewer processes of a role than the one before.
  await Promise.all(
    [...(inherited ?? [])].map(([name, left]) => isStarted(started, name) || left.stop(LEFT_STOP_MS_MAX)),
  )
}

type Instance = { role: Role; number: ProcessNumber }

/**
 * The number of edges of the version before, which an upgrade keeps: an edge has the raw ports of its number, and it cannot give
 * them to two. Null: this start is none.
 */
function keptEdges({ config, terminal }: Start, { is_continued, previous }: FolderLock): number | null {
  const before = is_continued ? countOf('edge', previous?.roles ?? []) : 0
  if (before === 0) return null
  const wanted = config.process_counts.edge
  if (before !== wanted)
    terminal.warn(
      'edge',
      `${before} run, and ${wanted} from the next start on: an upgrade moves no port to another process.`,
    )
  return before
}

/** By their names, of which the second is `edge-2`: one of them may be starting again. */
function countOf(role: Role, processes: readonly { role: string }[]): number {
  const names = new Set(processes.map((one) => one.role))
  const numbers = Array.from({ length: PROCESSES_MAX }, (_, number) => number)
  return 1 + numbers.findLastIndex((number) => names.has(instanceName(role, number)))
}

/** The processes of this node, in the order of their start. `edges`: how many of them; null: as the settings say. */
function instancesOf({ roles, process_counts }: Config, edges: number | null): Instance[] {
  return roles.flatMap((role) => {
    const count = (role === 'edge' ? edges : null) ?? process_counts[role]
    return Array.from({ length: count }, (_, number) => ({ role, number: { number, count } }))
  })
}

function firstOf(started: readonly SupervisedRole[], of_role: Role): SupervisedRole | undefined {
  return started.find(({ role }) => role === of_role)
}

function isStarted(started: readonly SupervisedRole[], name: string): boolean {
  return started.some((role) => role.name === name)
}

function inheritedBy(
  { previous }: FolderLock,
  instances: readonly Instance[],
  onEnd: () => void,
): Map<string, InheritedProcesses> {
  const all = [...(previous?.roles ?? []), ...(previous?.retiring ?? [])]
  const names = new Set([
    ...instances.map(({ role, number }) => instanceName(role, number.number)),
    ...all.map(({ role }) => role),
  ])
  const entries = [...names].map((name): [string, InheritedProcesses] => {
    const processes = all.filter(({ role }) => role === name)
    return [name, new InheritedProcesses(processes, onEnd)]
  })
  return new Map(entries)
}

function recordProcesses(
  lock: FolderLock,
  started: readonly SupervisedRole[],
  inherited: ReadonlyMap<string, InheritedProcesses> | null,
): void {
  const known = started.map((role) => ({ name: role.name, ...role.pids() }))
  const waiting = [...(inherited ?? [])].filter(([name]) => !isStarted(started, name))
  lock.record({
    roles: known.flatMap(({ name, current }) => (current === null ? [] : identitiesOf(name, [current]))),
    retiring: [
      ...known.flatMap(({ name, retiring }) => identitiesOf(name, retiring)),
      ...waiting.flatMap(([name, processes]) => identitiesOf(name, processes.pids())),
    ],
  })
}

/** The address of the example; null when there is none. Its failure is logged, and the platform runs without it. */
async function prepareExample(
  start: Start,
  database: DatabaseConnection,
  token: string,
  log: Logger,
): Promise<string | null> {
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
    log.error({ err: error }, 'example game could not be deployed; the platform runs without it')
    return null
  }
}

export function inStep<T>(
  terminal: SupervisorTerminal,
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

/** Prints what a person types once in a shell. The folder comes last on the PATH, so the shell keeps its own Node. */
function commandRows(folder: string | null): [string, string, string][] {
  if (folder === null) return []
  return [
    ['command', `export PATH="$PATH:${folder.replaceAll(/["$`\\]/g, '\\$&')}"`, 'then muster works in every folder'],
  ]
}

/** Relative to the working folder, where that is shorter. */
function shortPath(path: string): string {
  const short = relative(process.cwd(), path)
  return short === '' || short.startsWith('..') ? resolve(path) : short
}
