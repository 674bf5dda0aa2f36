// Why the container of a lobby ended: from the engine's state, the control group around it and the end of its log.
import { lastLines } from '../../../lobby-logs/read.ts'
import type { Cgroups } from '../cgroups.ts'
import type { Exit, ExitReason, Handle } from '../driver.ts'
import { neverRan } from '../driver.ts'
import { isAboutLibrary } from '../programs/program-needs.ts'
import type { ContainerFacts, ContainerInspect, ContainerState } from './container.ts'

/** Exit codes of the engine's init when it could not start the program. */
const COULD_NOT_START_CODES = [1, 126, 127]
/** How lines of the init of Docker and of Podman begin. */
const INITS = ['[FATAL tini ', 'ERROR (catatonit:'] as const
/** Last lines of stderr that are searched for an error of the loader. */
const STDERR_LINES = 4
const REFUSED_FORK =
  /\bcannot fork\b|\bfork: .*resource temporarily unavailable|\bspawn \S+ EAGAIN\b|unable to create (new )?native thread|can't start new thread|failed to create new OS thread|pthread_create failed/i
/** A shell's exit code for a signal is this plus the number of the signal. */
const SIGNAL_CODE = 128
const SIGNALS_MAX = 64
/** Exit code of a process that SIGKILL ended. */
const KILLED_CODE = 137
/** The engine's exit code of a container that it found dead after a restart of the machine. */
const UNKNOWN_CODE = 255

export type EndedContainer = {
  folder: string
  handle: Handle | null
  facts: ContainerFacts | null
  boot_id: string
  cgroups: Cgroups | null
  is_podman: boolean
  /** What it had used before its end, for an engine whose control groups are not seen. */
  last_usage?: { cpu_ms: number; has_reached_pids: boolean } | null
}

/** `found`: null when the engine has no such container any more. */
export async function exitOfContainer(found: ContainerInspect | null, ended: EndedContainer): Promise<Exit> {
  const { handle, facts, cgroups } = ended
  const group = facts?.group ?? handle?.group ?? null
  const cpu_ms = (group === null ? null : cgroups?.cpuTime(group)) ?? ended.last_usage?.cpu_ms ?? null
  if (found === null) {
    if (handle === null) return neverRan('lost')
    const { start_ts } = handle
    return { exit_code: null, reason: 'lost', cpu_ms, ran: { start_ts, end_ts: start_ts } }
  }
  const { State } = found
  if (State.Status === 'created' || State.StartedAt.startsWith('0001')) return neverRan('not_started')
  const start_ts = Date.parse(State.StartedAt)
  const ran = { start_ts, end_ts: Math.max(start_ts, Date.parse(State.FinishedAt)) }
  if (State.ExitCode === UNKNOWN_CODE && facts !== null && facts.boot_id !== ended.boot_id) {
    return { exit_code: null, reason: 'lost', cpu_ms: null, ran: { start_ts, end_ts: start_ts } }
  }
  return { exit_code: State.ExitCode, reason: await reasonOf(State, ended, group), cpu_ms, ran }
}

async function reasonOf(
  { ExitCode, OOMKilled }: ContainerState,
  { folder, cgroups, is_podman, last_usage = null }: EndedContainer,
  group: string | null,
): Promise<ExitReason> {
  if (ExitCode === 0) return 'exit'
  if (OOMKilled || (group !== null && (cgroups?.counters(group).oom_kills ?? 0) > 0)) return 'oom'
  // Podman does not see every such end, and version 1 counts it in the container's group only, which is gone.
  if (is_podman && ExitCode === KILLED_CODE && group !== null && cgroups?.hasReachedMemory(group)) return 'oom'
  if (group !== null && cgroups !== null && hasReachedProcesses(cgroups, group)) return 'pids'
  if (last_usage?.has_reached_pids || (cgroups === null && (await logsRefusedFork(folder)))) return 'pids'
  if (COULD_NOT_START_CODES.includes(ExitCode) && (await logsMissingLibrary(folder))) return 'missing_library'
  return ExitCode > SIGNAL_CODE && ExitCode <= SIGNAL_CODE + SIGNALS_MAX ? 'signal' : 'exit'
}

/** Version 1 counts a refused fork in the container's group only, which is gone. The highest number stays in ours. */
function hasReachedProcesses(cgroups: Cgroups, group: string): boolean {
  if (cgroups.counters(group).pids_refused > 0) return true
  const [peak, limit] = [cgroups.pidsPeak(group), cgroups.pidsMax(group)]
  return peak !== null && limit !== null && peak >= limit
}

/** Where control groups are not seen: the last lines of the shell, of Node.js, Java, Go, Python or a library of C. */
async function logsRefusedFork(folder: string): Promise<boolean> {
  const { lines } = await lastLines(folder, 'stderr', STDERR_LINES)
  return lines.some(({ bytes }) => REFUSED_FORK.test(bytes.toString()))
}

async function logsMissingLibrary(folder: string): Promise<boolean> {
  const { lines } = await lastLines(folder, 'stderr', STDERR_LINES)
  return lines.some(({ bytes }) => {
    const text = bytes.toString()
    const is_of_init = INITS.some((init) => text.startsWith(init))
    return isAboutLibrary(text) || (is_of_init && text.endsWith('No such file or directory'))
  })
}
