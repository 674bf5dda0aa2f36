// What a runner must know of a lobby whose node is away: its handle, in a file of the lobby's folder that is written when the
// container runs.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isGone } from '../../../node/procfs.ts'
import type { ContainerFacts, ContainerInspect } from '../docker/container.ts'
import type { Handle } from '../driver.ts'
import type { UsageSample } from './usage-samples.ts'

const FILE = 'task.json'

/** `used`: as sampled last by a runner that has closed since. */
type RunFile = { handle: Handle; facts: ContainerFacts; used?: UsageSample | null }

export function writeRunFile(folder: string, file: RunFile): void {
  const path = join(folder, FILE)
  writeFileSync(`${path}.new`, JSON.stringify(file), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Null: the lobby never ran, or is cleaned up. */
export function readRunFile(folder: string): RunFile | null {
  try {
    return JSON.parse(readFileSync(join(folder, FILE), 'utf8')) as RunFile
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

/** Processes of another machine are not in this machine's /proc, so a handle has no start time of a process. */
export function handleOfTask({ State }: ContainerInspect, facts: ContainerFacts, node_id: string): Handle {
  const { lobby_id, boot_id, uid, group, network } = facts
  const start_ts = Date.parse(State.StartedAt)
  const process = { pid: State.Pid, start_time: '', boot_id, sandbox: 'container' as const }
  return { lobby_id, ...process, start_ts, uid, group, network, node_id }
}
