// Reads from the kernel how much memory and processor time the processes of one platform use, and how often they wake up.
import { readdirSync, readFileSync } from 'node:fs'

/** The kernel reports times to programs in hundredths of a second. */
const TICK_MS = 10
const KB_PER_MB = 1024

export type Sample = {
  pid: number
  name: string
  /** Pages that several processes share count in parts, so that a sum over processes is exact. */
  pss_mb: number
  cpu_ms: number
  /** Voluntary context switches of all threads: each is a wake-up that has ended. */
  wakeups: number
}

/** Processes whose command line or environment has one of the words, and their descendants. */
export function sampleProcesses(words: readonly string[]): Map<number, Sample> {
  const all = new Map<number, { parent_pid: number; command: string; is_named: boolean }>()
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry)
    if (!Number.isInteger(pid) || pid === process.pid) continue
    const stat = read(pid, 'stat')
    if (stat === '') continue
    const command = read(pid, 'cmdline').replaceAll('\0', ' ').trim()
    const text = `${command} ${read(pid, 'environ')}`
    const parent_pid = Number(fieldsOf(stat)[1])
    all.set(pid, { parent_pid, command, is_named: words.some((word) => text.includes(word)) })
  }
  const belongs = (pid: number): boolean => {
    const found = all.get(pid)
    return found !== undefined && (found.is_named || belongs(found.parent_pid))
  }
  const pids = [...all.keys()].filter(belongs)
  return new Map(pids.map((pid) => [pid, sampleOf(pid, all.get(pid)!.command)]))
}

function sampleOf(pid: number, command: string): Sample {
  const pss_kb = Number(/^Pss:\s+(\d+)/m.exec(read(pid, 'smaps_rollup'))?.[1] ?? 0)
  // A process without memory has ended. The memory of other users' processes is for root with all capabilities.
  const [state = 'X'] = fieldsOf(read(pid, 'stat'))
  if (pss_kb === 0 && command !== '' && !/^[ZX]?$/.test(state))
    throw new Error(`The memory of process ${pid} cannot be read.`)
  // With the time of children that have ended.
  const [user = 0, system = 0, user_of_ended = 0, system_of_ended = 0] = fieldsOf(read(pid, 'stat'))
    .slice(11, 15)
    .map(Number)
  let wakeups = 0
  for (const thread of listThreads(pid)) {
    wakeups += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(read(pid, `task/${thread}/status`))?.[1] ?? 0)
  }
  return {
    pid,
    name: nameOf(command),
    pss_mb: pss_kb / KB_PER_MB,
    cpu_ms: (user + system + user_of_ended + system_of_ended) * TICK_MS,
    wakeups,
  }
}

/** The shortest text that distinguishes a process from the others of the platform. */
function nameOf(command: string): string {
  const role = /role\.js (api|matchmaker|runner|edge)$/.exec(command)?.[1]
  if (role !== undefined) return role
  if (/muster\.js start/.test(command)) return 'supervisor'
  if (/^postgres: /.test(command))
    return `postgres: ${command.slice('postgres: '.length).replace(/\d+\.\d+\.\d+\.\d+\(\d+\)/, '')}`
  if (/\/postgres /.test(command)) return 'postgres'
  const [program = '', ...rest] = command.split(' ')
  const script = [program, ...rest].find((word) => /\.[cm]?[jt]s$/.test(word))
  return (script ?? program).split('/').slice(-2).join('/')
}

/** Fields from the third on. The second, in parentheses, may contain any text. */
const fieldsOf = (line: string): string[] => line.slice(line.lastIndexOf(')') + 2).split(' ')

function listThreads(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return [] // The process has ended.
  }
}

/** Empty when the process has ended. */
function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    return ''
  }
}
