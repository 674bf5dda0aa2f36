// The supervisor changes to another version of the program. A process of that version first loads its modules and reads the
// settings; what it refuses changes nothing. Then the roles run on, and the supervisor replaces the program of its own process
// (execve), so service managers and terminals see the same process. The new program takes the data folder, restarts
// PostgreSQL, migrates, and replaces one role after the other: the edge hands its sockets over, the matchmaker its shards.
// Where it does not start, guard.ts leads the process back to this program, which replaces the roles in the same way.
//
// The supervisor of a joined node has the link, over which players reach its lobbies. So it changes only the program of its
// roles, and its own with the next start. A role that does not start leads all of them back.
import { accessSync, constants, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { handOver, type ProgramVersion, workTogether } from '../../wire/compatibility.ts'
import type { FolderLock, UpgradeRefusal } from '../lock.ts'
import type { StartedPart } from '../started-part.ts'
import type { RoleProgram } from '../supervised-role.ts'
import type { SupervisorTerminal } from '../terminal.ts'
import { checkProgram } from './check-program.ts'
import type { UpgradeRequest } from './request.ts'
import { removeWayBack, wayBackFile, writeWayBack } from './way-back.ts'

/**
 * What runs. `settings`: that this start has chosen, and the next one must keep. `has_joined`: the node of another platform.
 * `refusal`: of the upgrade from which this start leads back; null: of none.
 */
export type Running = {
  lock: FolderLock
  log: Logger
  program: ProgramVersion
  settings: Readonly<Record<string, string>>
  has_joined: boolean
  refusal: UpgradeRefusal | null
  /** The version that the platform of a joined node runs now. */
  platformVersion?: () => Promise<string>
}

export type Replacement = {
  env: NodeJS.ProcessEnv
  data_dir: string
  terminal: SupervisorTerminal
  parts: readonly StartedPart[]
  running: Running
  now: () => number
}

/** Returns only after a refusal or a failure, which is in the file of the lock, and on a joined node. */
export async function replaceProgram(replacement: Replacement, request: UpgradeRequest): Promise<void> {
  const { terminal, running } = replacement
  const { lock, log } = running
  const { version, request_id = '' } = request
  try {
    await requireReady(replacement, request)
    terminal.say(`changing to version ${version}; players stay connected.`)
    if (running.has_joined) await replaceRoles(replacement, request)
    else await replaceSelf(replacement, request)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    log.error({ err: error, version }, 'upgrade failed; the version before runs on')
    lock.record({ refusal: { request_id, reason } })
    terminal.warn('upgrade', reason)
  }
}

/** Throws with the reason and the remedy. Nothing has changed then. */
async function requireReady({ env, data_dir, running }: Replacement, request: UpgradeRequest): Promise<void> {
  const { version, wire_version, exec_path, cli_path, role_path } = request
  const { program, log, settings } = running
  if (!workTogether(program.wire_version, wire_version)) {
    throw new Error(
      `Version ${version} is too far from ${program.version}, which runs. Upgrade to a version between them first.`,
    )
  }
  for (const path of [exec_path, cli_path, role_path]) {
    try {
      accessSync(path, constants.R_OK)
    } catch {
      throw new Error(`The new version cannot be read at ${path} by the user of the platform.`)
    }
  }
  const failure = await checkProgram(request, { ...env, ...settings })
  if (failure === null) return
  log.error({ version, output: failure.output }, 'program of the upgrade does not load')
  throw new Error(
    `Version ${version} does not start: ${sentence(failure.reason)} Nothing has changed, and ${program.version} runs on. ` +
      `${logLine(data_dir, 'program of the upgrade does not load')} Remove the cause, and run muster upgrade again.`,
  )
}

/** Where the whole error is. */
export function logLine(data_dir: string, message: string): string {
  return `The line "${message}" of ${join(data_dir, 'logs', 'supervisor.log')} has the whole error.`
}

export function sentence(reason: string): string {
  return reason.endsWith('.') ? reason : `${reason}.`
}

async function replaceRoles({ data_dir, parts, running, now }: Replacement, request: UpgradeRequest): Promise<void> {
  const { version, wire_version, exec_path, role_path, hand_over } = request
  // The tables that the roles need are made there.
  const of_platform = await running.platformVersion?.()
  if (of_platform !== version) throw new Error(`The platform runs ${of_platform}. Upgrade it to ${version} first.`)
  const is_plain = hand_over !== undefined && !handOver(running.program.hand_over, hand_over)
  const replaced: { part: StartedPart; before: RoleProgram }[] = []
  try {
    for (const part of parts) {
      const before = await part.restart?.({ exec_path, path: role_path }, { is_plain })
      if (before != null) replaced.push({ part, before })
    }
  } catch (error) {
    for (const { part, before } of replaced.toReversed()) await part.restart?.(before, { is_plain })
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(
      `Version ${version} did not start: ${sentence(reason)} All roles run ${running.program.version} again. ` +
        `${logLine(data_dir, 'upgrade failed; the version before runs on')} Remove the cause, and run muster upgrade again.`,
      { cause: error },
    )
  }
  running.program = { version, wire_version, hand_over: hand_over ?? running.program.hand_over }
  const start_ts = new Date(now()).toISOString()
  running.lock.record({ start_ts, program: { ...running.program, is_ready: true, has_joined: true } })
}

async function replaceSelf({ env, data_dir, parts, running }: Replacement, request: UpgradeRequest): Promise<void> {
  const { exec_path, cli_path, request_id = '' } = request
  const own_path = process.argv[1]
  if (process.execve === undefined || own_path === undefined) {
    throw new Error('This system cannot replace the program of a process.')
  }
  const file = wayBackFile(data_dir)
  writeWayBack(file, {
    ...{ exec_path: process.execPath, cli_path: realpathSync(own_path), request_id, reason: null },
    ...{ from_version: running.program.version, to_version: request.version },
  })
  try {
    for (const part of parts) await part.stay?.(join(data_dir, 'logs'))
  } catch (error) {
    removeWayBack(file)
    throw error
  }
  const guard = new URL('./guard.ts', import.meta.url)
  guard.searchParams.set('file', file)
  const args = ['--import', guard.href, cli_path, 'start']
  // Sockets, files and locks of this program close now. The roles and PostgreSQL run on.
  process.execve(exec_path, [exec_path, ...args], definedOf({ ...env, ...running.settings }))
}

function definedOf(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}
