// Reads processes from /proc. A pid alone does not identify a process, because it is used again; pid, start time and boot
// id together do. On systems without /proc no process is identified, and none is ended on a guess.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** `start_time` is in clock ticks after the boot. */
export type ProcessId = { pid: number; start_time: string; boot_id: string }
export type ProcessStat = { pid: number; state: string; parent_pid: number; start_time: string }
export type TreeUsage = { cpu_ms: number; memory_bytes: number }

/** The kernel reports times in hundredths of a second. */
const TICK_MS = 10
/** The key of the page size in /proc/self/auxv. */
const AUXV_PAGE_SIZE = 6n
/** The page size where auxv has none. */
const PAGE_SIZE = 4_096
const SOCKET_LINK = /^socket:\[(\d+)\]$/
/** Generations between a process and an ancestor. Bounds the walk to the root of a tree. */
const TREE_DEPTH_MAX = 64

/** Null when there is no such process, or no /proc. Reads of it do not wait for a disk, so they are synchronous. */
export function readStat(pid: number): ProcessStat | null {
  const line = readStatLine(pid)
  return line === null ? null : parseStat(line)
}

function readStatLine(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

/** The fields of a stat line from the third one on. */
const fieldsOf = (line: string): string[] => line.slice(line.lastIndexOf(')') + 2).split(' ')

/** The name in the second field may contain parentheses and spaces, so fields are counted after its last `)`. */
export function parseStat(line: string): ProcessStat | null {
  const fields = fieldsOf(line)
  const pid = Number.parseInt(line, 10)
  const [state, parent_pid] = fields
  const start_time = fields[19]
  if (!Number.isInteger(pid) || state === undefined || parent_pid === undefined || start_time === undefined) return null
  return { pid, state, parent_pid: Number(parent_pid), start_time }
}

/** Null when there is no such process, or no /proc. */
export function identityOf(pid: number): ProcessId | null {
  const stat = readStat(pid)
  return stat === null ? null : { pid, start_time: stat.start_time, boot_id: readBootId() }
}

/**
 * False for a zombie: its parent may reap it late, or never in a container without an init process. A process is also
 * shown as a zombie once its first thread has ended. With further threads it counts as alive, because they may hold its
 * ports.
 */
export function isAlive(id: ProcessId, boot_id = readBootId()): boolean {
  if (id.boot_id !== boot_id) return false
  const stat = readStat(id.pid)
  if (stat === null || stat.start_time !== id.start_time || stat.state === 'X') return false
  return stat.state !== 'Z' || threadCount(id.pid) > 1
}

/** 0 when there is no such process. */
function threadCount(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length
  } catch (error) {
    if (isGone(error)) return 0
    throw error
  }
}

export function childrenOf(pid: number): number[] {
  try {
    return numbersOf(readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1'))
  } catch (error) {
    if (!isGone(error)) throw error
  }
  // The process is gone, or the kernel was built without this file.
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => readStat(Number(name))?.parent_pid === pid)
    .map(Number)
}

/** The process and its descendants, `count_max` at most. */
export function treeOf(pid: number, count_max: number): number[] {
  const tree = [pid]
  for (let index = 0; index < tree.length && tree.length < count_max; index++) tree.push(...childrenOf(tree[index]!))
  return tree.slice(0, count_max)
}

/** The inodes of the open sockets of a process, as text; null when this user may not read them. */
export function socketInodesOf(pid: number, fds_max: number): string[] | null {
  try {
    const fds = readdirSync(`/proc/${pid}/fd`).slice(0, fds_max)
    return fds.flatMap((fd) => SOCKET_LINK.exec(readLink(`/proc/${pid}/fd/${fd}`))?.[1] ?? [])
  } catch (error) {
    if (isGone(error)) return []
    if (codeOf(error) === 'EACCES' || codeOf(error) === 'EPERM') return null
    throw error
  }
}

/** Empty when the link is gone. */
function readLink(path: string): string {
  try {
    return readlinkSync(path)
  } catch (error) {
    if (isGone(error)) return ''
    throw error
  }
}

/** The unit of memory in /proc. */
export function readPageSize(): number {
  const words = new BigUint64Array(Uint8Array.from(readFileSync('/proc/self/auxv')).buffer)
  const at = words.findIndex((word, index) => index % 2 === 0 && word === AUXV_PAGE_SIZE)
  return at === -1 ? PAGE_SIZE : Number(words[at + 1])
}

/**
 * The usage of each of these processes with its descendants. CPU time is in ms of one core, and includes ended processes
 * that their parents have reaped. Resident memory counts shared pages once for each process.
 */
export function usageOfTrees(pids: readonly number[], page_size: number): Map<number, TreeUsage> {
  const processes = new Map<number, TreeUsage & { parent_pid: number }>()
  for (const name of readdirSync('/proc')) {
    const found = /^\d+$/.test(name) ? usageOf(Number(name), page_size) : null
    if (found !== null) processes.set(Number(name), found)
  }
  const trees = new Map(
    pids.filter((pid) => processes.has(pid)).map((pid) => [pid, { cpu_ms: 0, memory_bytes: 0 } as TreeUsage]),
  )
  for (const [pid, { cpu_ms, memory_bytes }] of processes) {
    let ancestor: number | undefined = pid
    for (let depth = 0; ancestor !== undefined && depth < TREE_DEPTH_MAX; depth++) {
      const tree = trees.get(ancestor)
      if (tree !== undefined) {
        tree.cpu_ms += cpu_ms
        tree.memory_bytes += memory_bytes
        break
      }
      ancestor = processes.get(ancestor)?.parent_pid
    }
  }
  return trees
}

/** Null when there is no such process. */
function usageOf(pid: number, page_size: number): (TreeUsage & { parent_pid: number }) | null {
  const line = readStatLine(pid)
  if (line === null) return null
  const fields = fieldsOf(line).map(Number)
  const [own_user = 0, own_system = 0, childrens_user = 0, childrens_system = 0] = fields.slice(11, 15)
  const ticks = own_user + own_system + childrens_user + childrens_system
  return {
    parent_pid: fields[1] ?? 0,
    cpu_ms: ticks * TICK_MS,
    memory_bytes: (fields[21] ?? 0) * page_size,
  }
}

export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
}

/** False when there is no such process. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

export function numbersOf(text: string): number[] {
  return text.split(/\s+/).filter(Boolean).map(Number)
}

export function isGone(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'ENOENT' || code === 'ESRCH' || code === 'ENOTDIR'
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
