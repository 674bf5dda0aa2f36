// `muster upgrade`: the program of this command takes over the platform that runs on this machine, from an older version.
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import type { Config } from '../../config/config.ts'
import { readConfig } from '../../config/read-config.ts'
import { StartError } from '../../config/start-error.ts'
import { connect } from '../../database/connect.ts'
import { embeddedUrl } from '../../database/embedded/embedded.ts'
import { HAND_OVER_BEFORE, handOver, thisProgram } from '../../wire/compatibility.ts'
import { COMPILE_PROGRAM, compile } from '../compile.ts'
import { COMPILED_FOLDER } from '../environment.ts'
import { type Holder, type HolderProgram, holderOf, isLocked } from '../lock.ts'
import { type NodeProgram, readNodePrograms, requireAdditive, requireFollowing, requireNodesTogether } from './check.ts'
import { writeUpgradeRequest } from './request.ts'

/** Four roles stop and start, one after the other, and once more after a failure. */
const UPGRADE_MS_MAX = 600_000
const CHECK_EVERY_MS = 200
const SILENT = pino({ level: 'silent' })

export type UpgradeOptions = {
  env: NodeJS.ProcessEnv
  /** The file that Node runs for the command `muster`. */
  cli_path: string
  /** `is_good`: false for what the operator should know before it happens. */
  onStep: (name: string, detail: string, is_good?: boolean) => void
}

/** `next`: the nodes that still run another version. `has_joined`: the platform knows the other nodes. */
export type Upgraded = { version: string; next: readonly NodeProgram[]; has_joined: boolean }

/** Resolves when all roles of this machine run this program. Throws a StartError with the reason and the remedy. */
export async function upgrade({ env, cli_path, onStep }: UpgradeOptions): Promise<Upgraded> {
  const config = readConfig(env)
  const { data_dir } = config
  const program = thisProgram()
  const { holder, running } = requireRunning(data_dir)
  requireFollowing(running)
  const { has_joined } = running
  onStep('version', `${program.version} may follow ${running.version}`)
  if (!has_joined) {
    const count = await inDatabase(config, async (db) => {
      requireNodesTogether(await readNodePrograms(db))
      return requireAdditive(db)
    })
    onStep('tables', count === 0 ? 'nothing to migrate' : `${count} migrations, which only add`)
  }
  if (!handOver(running.hand_over ?? HAND_OVER_BEFORE, program.hand_over)) {
    const text = `${running.version} and ${program.version} share no hand-over: all connections through this edge break once`
    onStep('edge', text, false)
  }
  // Each role is away for the time that the next one needs to load.
  const compiled_env = { ...env, NODE_COMPILE_CACHE: env.NODE_COMPILE_CACHE ?? join(data_dir, COMPILED_FOLDER) }
  await compile(compiled_env, { signal: new AbortController().signal, log: SILENT })
  const role_path = fileURLToPath(new URL('../../main.ts', import.meta.url))
  const request_id = randomUUID()
  const paths = { exec_path: process.execPath, cli_path, role_path, check_path: COMPILE_PROGRAM }
  writeUpgradeRequest(data_dir, { ...program, ...paths, request_id })
  process.kill(holder.pid, 'SIGUSR2')
  await upgraded(data_dir, holder, request_id)
  const roles = holderOf(data_dir)?.roles.map(({ role }) => role) ?? []
  onStep('roles', roles.join(', '))
  const nodes = has_joined ? [] : await inDatabase(config, readNodePrograms)
  return { version: program.version, next: nodes.filter(({ version }) => version !== program.version), has_joined }
}

function requireRunning(data_dir: string): { holder: Holder; running: HolderProgram } {
  const holder = isLocked(data_dir) ? holderOf(data_dir) : null
  if (holder === null) {
    throw new StartError(
      `No platform runs on ${data_dir}: set MUSTER_DATA to the data folder of yours, or start it with this version.`,
    )
  }
  const { program } = holder
  if (program === null) {
    throw new StartError(
      'The platform was started by a version that cannot be upgraded while it runs. Stop it, and start it with this version; lobbies run on.',
    )
  }
  if (!program.is_ready) throw new StartError('The platform is starting or being upgraded. Try again when it is ready.')
  return { holder, running: program }
}

/** Resolves when the platform has become ready after `before`. Throws the reason of a refusal of this request. */
async function upgraded(data_dir: string, before: Holder, request_id: string): Promise<void> {
  for (let waited_ms = 0; waited_ms < UPGRADE_MS_MAX; waited_ms += CHECK_EVERY_MS) {
    await delay(CHECK_EVERY_MS)
    const now = holderOf(data_dir)
    const refusal = now?.refusal ?? null
    // A supervisor of the version before does not name the request.
    const is_own = refusal?.request_id === request_id || (refusal?.request_id === '' && before.refusal === null)
    if (refusal !== null && is_own) throw new StartError(refusal.reason)
    if (now?.program?.is_ready && now.start_ts !== before.start_ts) return
    if (!isRunning(before.pid)) throw new StartError(`The platform has ended. ${remedy()}`)
  }
  throw new StartError(`The platform is not ready after ${UPGRADE_MS_MAX / 1_000} s. ${remedy()}`)
}

function remedy(): string {
  return 'logs/supervisor.log of the data folder says why. Start the platform again; lobbies run on.'
}

/** The process stays the same when its program changes. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function inDatabase<T>(
  { database_url, data_dir }: Config,
  work: (db: ReturnType<typeof connect>['db']) => Promise<T>,
): Promise<T> {
  const url = database_url ?? (await embeddedUrl(data_dir))
  const database = connect({ url, application_name: 'muster upgrade', connections_max: 1, log: SILENT })
  try {
    return await work(database.db)
  } finally {
    await database.close()
  }
}
