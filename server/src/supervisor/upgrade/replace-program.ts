// The supervisor changes to another version of the program. Its roles run on, and it replaces the program of its own
// process (execve), so service managers and terminals see the same process. The new program takes the data folder, restarts
// PostgreSQL, migrates, and replaces one role after the other: the edge hands its sockets over, the matchmaker its shards.
//
// The supervisor of a joined node has the link, over which players reach its lobbies. So it changes only the program of its
// roles, and its own with the next start.
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { type ProgramVersion, workTogether } from '../../compatibility.ts'
import type { FolderLock } from '../lock.ts'
import type { Part } from '../start-platform.ts'
import type { Terminal } from '../terminal.ts'
import type { UpgradeRequest } from './request.ts'

/**
 * What runs. `settings`: that this start has chosen, and the next one must keep. `has_joined`: the node of another platform.
 */
export type Running = {
  lock: FolderLock
  program: ProgramVersion
  settings: Readonly<Record<string, string>>
  has_joined: boolean
  /** The version that the platform of a joined node runs now. */
  platformVersion?: () => Promise<string>
}

export type Replacement = {
  env: NodeJS.ProcessEnv
  data_dir: string
  terminal: Terminal
  parts: readonly Part[]
  running: Running
  now: () => number
}

/** Returns only after a refusal, which is in the file of the lock, and on a joined node. */
export async function replaceProgram(replacement: Replacement, request: UpgradeRequest): Promise<void> {
  const { terminal, running } = replacement
  const { lock } = running
  const reason = refusalOf(running, request)
  if (reason !== null) {
    lock.record({ refusal: reason })
    terminal.warn('upgrade', reason)
    return
  }
  terminal.say(`changing to version ${request.version}; players stay connected.`)
  try {
    if (running.has_joined) await replaceRoles(replacement, request)
    else await replaceSelf(replacement, request)
  } catch (error) {
    lock.record({ refusal: error instanceof Error ? error.message : String(error) })
    throw error
  }
}

function refusalOf({ program }: Running, { version, wire_version, ...paths }: UpgradeRequest): string | null {
  if (!workTogether(program.wire_version, wire_version)) {
    return `Version ${version} is too far from ${program.version}, which runs. Upgrade to a version between them first.`
  }
  for (const path of Object.values(paths)) {
    try {
      accessSync(path, constants.R_OK)
    } catch {
      return `The new version cannot be read at ${path} by the user of the platform.`
    }
  }
  return null
}

async function replaceRoles({ parts, running, now }: Replacement, request: UpgradeRequest): Promise<void> {
  const { version, wire_version, exec_path, role_path } = request
  // The tables that the roles need are made there.
  const of_platform = await running.platformVersion?.()
  if (of_platform !== version) throw new Error(`The platform runs ${of_platform}. Upgrade it to ${version} first.`)
  for (const part of parts) await part.restart?.({ exec_path, path: role_path })
  running.program = { version, wire_version }
  const start_ts = new Date(now()).toISOString()
  running.lock.record({ start_ts, program: { version, wire_version, is_ready: true, has_joined: true } })
}

async function replaceSelf({ env, data_dir, parts, running }: Replacement, request: UpgradeRequest): Promise<void> {
  const { exec_path, cli_path } = request
  if (process.execve === undefined) throw new Error('This system cannot replace the program of a process.')
  for (const part of parts) await part.stay?.(join(data_dir, 'logs'))
  // Sockets, files and locks of this program close now. The roles and PostgreSQL run on.
  process.execve(exec_path, [exec_path, cli_path, 'start'], definedOf({ ...env, ...running.settings }))
}

function definedOf(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}
