// The processes of a run: those that carry its mark or name a path in its folder, and their descendants. A program in a
// container or a sandbox has a scrubbed environment; the control groups of its platform or the root of its container show it.
import { readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { readStat, signal, treeOf } from '../../src/node/procfs.ts'
import { isLivingMark, namesIn, RUN_VARIABLE } from './run.ts'

/** Reads of the list of processes while they are killed: a new one may appear meanwhile. */
const PASSES_MAX = 20
const PASS_MS = 100
/** PostgreSQL removes its shared memory when it ends in order. */
const POSTGRES_MS_MAX = 5_000
const TREE_SIZE_MAX = 10_000

export type RunTraces = {
  mark: string
  folders: readonly string[]
  /** Names of control groups. */
  groups: readonly string[]
  /** Processes in the network namespaces of the run. */
  pids: readonly number[]
}

type Seen = { pid: number; environment: string; command: string; is_postgres: boolean; cwd: string; cgroups: string }

/** Every mark in the environment of a process. */
export function marksOfProcesses(): string[] {
  return allProcesses().flatMap(({ environment }) => markIn(environment) ?? [])
}

/** Kills all processes of the run. Returns how many there were. */
export async function killProcesses(traces: RunTraces): Promise<number> {
  const killed = new Set<number>()
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    const found = findProcesses(traces)
    if (found.length === 0) break
    // Whatever would start PostgreSQL again ends before it.
    for (const { pid } of found.filter((one) => !one.is_postgres)) signal(pid, 'SIGKILL')
    const postgres = found.filter((one) => one.is_postgres)
    if (pass === 0 && postgres.length > 0) await endPostgres(postgres)
    else for (const { pid } of postgres) signal(pid, 'SIGKILL')
    for (const { pid } of found) killed.add(pid)
    await sleep(PASS_MS)
  }
  return killed.size
}

async function endPostgres(found: readonly Seen[]): Promise<void> {
  const pids = found.map(({ pid }) => pid)
  const postmasters = pids.filter((pid) => !pids.includes(readStat(pid)?.parent_pid ?? 0))
  for (const pid of postmasters) signal(pid, 'SIGQUIT')
  for (let waited_ms = 0; waited_ms < POSTGRES_MS_MAX && pids.some(isThere); waited_ms += PASS_MS) await sleep(PASS_MS)
}

function findProcesses({ mark, folders, groups, pids: known }: RunTraces): Seen[] {
  const all = new Map(allProcesses().map((seen) => [seen.pid, seen]))
  const spared = new Set(ancestorsOf(process.pid))
  const namesFolder = (text: string): boolean => folders.some((folder) => text.includes(`${folder}/`))
  const isOfRun = (seen: Seen): boolean => {
    const own_mark = markIn(seen.environment)
    if (own_mark !== null && own_mark !== mark && isLivingMark(own_mark)) return false
    return (
      own_mark === mark ||
      namesFolder(seen.environment) ||
      namesFolder(seen.command) ||
      (seen.is_postgres && namesFolder(`${seen.cwd}/`)) ||
      groups.some((group) => seen.cgroups.includes(`/${group}`)) ||
      known.includes(seen.pid) ||
      namesFolder(rootOf(seen.pid))
    )
  }
  const roots = [...all.values()].filter((seen) => !spared.has(seen.pid) && isOfRun(seen))
  const pids = new Set(roots.flatMap(({ pid }) => treeOf(pid, TREE_SIZE_MAX)))
  return [...pids].filter((pid) => !spared.has(pid) && isThere(pid)).flatMap((pid) => all.get(pid) ?? [])
}

function allProcesses(): Seen[] {
  return namesIn('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({
      pid: Number(name),
      environment: `\0${readOf(name, 'environ')}`,
      command: readOf(name, 'cmdline').replaceAll('\0', ' '),
      is_postgres: /\/(postgres|initdb)( \(deleted\))?$/.test(linkOf(name, 'exe')),
      cwd: linkOf(name, 'cwd'),
      cgroups: readOf(name, 'cgroup'),
    }))
}

function markIn(environment: string): string | null {
  return new RegExp(`\0${RUN_VARIABLE}=([^\0]+)`).exec(environment)?.[1] ?? null
}

/** This process and those that started it. */
function ancestorsOf(pid: number): number[] {
  const parent = readStat(pid)?.parent_pid ?? 0
  return parent === 0 ? [pid] : [pid, ...ancestorsOf(parent)]
}

/** What is mounted at the root of the process: for a container the layers of its image, in the folder of its engine. */
function rootOf(pid: number): string {
  const lines = readOf(String(pid), 'mountinfo').split('\n')
  return lines.find((line) => line.split(' ')[4] === '/') ?? ''
}

function isThere(pid: number): boolean {
  const state = readStat(pid)?.state
  return state !== undefined && state !== 'Z' && state !== 'X'
}

/** Empty when the process has ended, or is of another user. */
function readOf(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

function linkOf(pid: string, file: string): string {
  try {
    return readlinkSync(`/proc/${pid}/${file}`)
  } catch {
    return ''
  }
}
