// What a run uses and where it listens, read from its control group and from /proc.
import { isAlive, socketInodesOf, treeOf, usageOfTrees } from '../../node/procfs.ts'
import { type ListeningSocket, readListening } from '../sockets.ts'
import type { Cgroups } from './cgroups.ts'
import type { Handle, Usage } from './driver.ts'

/** Processes of one lobby whose sockets are read. It equals the limit of processes that a lobby has (launch.ts). */
const PROCESSES_MAX = 256
/** Open files of one process that are read. More than a game server needs. */
const FDS_MAX = 4_096

export type Machine = { boot_id: string; page_size: number; cgroups: Cgroups | null }

/** By lobby id. From the control group where it counts CPU time and memory, from the process tree otherwise. */
export function usageOfRuns(handles: readonly Handle[], machine: Machine): Map<string, Usage> {
  const found = new Map<string, Usage>()
  const without_group: Handle[] = []
  for (const handle of handles.filter((one) => isAlive(one, machine.boot_id))) {
    const usage = usageOfGroup(handle, machine.cgroups)
    if (usage === null) without_group.push(handle)
    else found.set(handle.lobby_id, usage)
  }
  if (without_group.length === 0) return found
  const pids = without_group.map(({ pid }) => pid)
  const trees = usageOfTrees(pids, machine.page_size)
  for (const { lobby_id, pid } of without_group) {
    const usage = trees.get(pid)
    if (usage !== undefined) found.set(lobby_id, usage)
  }
  return found
}

/** Null: the run has no control group, or its group does not count both values. */
function usageOfGroup({ group }: Handle, cgroups: Cgroups | null): Usage | null {
  const cpu_ms = group === null ? null : (cgroups?.cpuTime(group) ?? null)
  const memory_bytes = group === null ? null : (cgroups?.memory(group) ?? null)
  return cpu_ms === null || memory_bytes === null ? null : { cpu_ms, memory_bytes }
}

/** The listening sockets of a process and its descendants; null where the system shows the files of none of them. */
export async function listeningSocketsOf(pid: number): Promise<ListeningSocket[] | null> {
  const inodes = treeOf(pid, PROCESSES_MAX).map((one) => socketInodesOf(one, FDS_MAX))
  if (inodes.every((some) => some === null)) return null
  const of_lobby = new Set(inodes.flatMap((some) => some ?? []))
  return [...(await readListening('tcp', of_lobby, pid)), ...(await readListening('udp', of_lobby, pid))]
}
