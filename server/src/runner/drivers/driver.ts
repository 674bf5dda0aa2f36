// A driver turns one lobby into something that runs. It is told what to run, says what the operating system knows to
// run, and ends it. It decides nothing: which lobbies are wanted is the reconcile loop's, which knows the database.
// What runs outlives the process that started it, and is found again by `list`.
import type { LogLine, LogStream } from '../../lobby-logs/files.ts'
import type { ListeningSocket } from '../sockets.ts'

/** What a lobby may use at most. */
export type Tier = {
  /** Whole cores' worth of time, fractions allowed. */
  cpu_cores: number
  /** Memory with everything that counts as it: anonymous pages, page cache, the private /tmp. */
  memory_bytes: number
  /** Processes and threads. */
  pids_max: number
  /** Each of the private writable folders, where the driver can bound them. */
  scratch_bytes: number
}

export type RunSpec = {
  /** One lobby is started once, ever: a second start of the same id throws. */
  lobby_id: string
  /** Absolute path of the unpacked build. It is read-only for the lobby. */
  build_folder: string
  /** The argv. The program is looked for in the build, then among the platform's and the host's programs. */
  args: readonly string[]
  /** All of the environment but PATH, HOME and TMPDIR, which are the driver's. Holds a secret: never logged. */
  env: Readonly<Record<string, string>>
  tier: Tier
}

/** Names one run over restarts of the runner and of the machine. Plain JSON. */
export type Handle = {
  lobby_id: string
  pid: number
  /** Ticks since boot, field 22 of /proc/PID/stat: with boot_id it tells a process from a later one of the same pid. */
  start_time: string
  boot_id: string
  sandbox: 'bubblewrap' | 'none'
  /** When it began, in milliseconds since the epoch by the clock of the machine. */
  start_ts: number
  /** The uid that is the lobby's own while it runs; null where lobbies run as the platform's user. */
  uid: number | null
  /** The name of its control group; null where there are none. */
  group: string | null
}

/**
 * Why a run ended, seen from outside:
 * - `exit`: the program ended by itself, with `exit_code`.
 * - `signal`: a signal ended it; `exit_code` is 128 + its number.
 * - `oom`, `pids`: it reached its limit of memory, of processes.
 * - `no_such_file`: args[0] is neither in the build nor among the programs that are there.
 * - `not_executable`: args[0] is there, without its executable bit.
 * - `missing_library`: the loader, or the interpreter that the file asks for, did not find what it needs.
 * - `build_damaged`: nothing was started: the stored archive, or its unpacked copy, is not what was uploaded.
 * - `no_build`, `no_ports`: nothing was started: the build cannot be unpacked, no port is free.
 * - `not_started`: the machine refused; the lobby's log says how.
 * - `stopped`: it was ended because it was no longer wanted.
 * - `lost`: it is gone, and nobody saw how (a power cut, a kill -9 of its monitor, a crash before its start).
 */
export type ExitReason =
  | 'exit'
  | 'signal'
  | 'oom'
  | 'pids'
  | 'no_such_file'
  | 'not_executable'
  | 'missing_library'
  | 'build_damaged'
  | 'no_build'
  | 'no_ports'
  | 'not_started'
  | 'stopped'
  | 'lost'

/**
 * `exit_code` is null when nothing ran, or nobody saw it. `cpu_ms` is the time of one core that all of it has used; null
 * when nothing ran, or where no control group counted it. `ran` is when it lived, as the machine's files say, whoever
 * looked then; null when nothing ran. Of a run that is lost the end is the last moment at which it was known to live.
 */
export type Exit = { exit_code: number | null; reason: ExitReason; cpu_ms: number | null; ran: Life | null }
export type Life = { start_ts: number; end_ts: number }

/** `cpu_ms`: all that was ever used, of one core. `memory_bytes`: now, without files that are only cached. */
export type Usage = { cpu_ms: number; memory_bytes: number }

/** The exit of a lobby that never had a process. */
export function neverRan(reason: ExitReason): Exit {
  return { exit_code: null, reason, cpu_ms: null, ran: null }
}

/** Either it runs, or it never did: `message` is a sentence for its developer, already in the lobby's stderr log. */
export type Started = { handle: Handle } | { refused: ExitReason; message: string }

export type Driver = {
  /** The column `driver` of lobby_runs. */
  name: 'process'
  /** What lobbies are run in, found out when the driver was made. */
  sandbox: 'bubblewrap' | 'none'
  /**
   * Starts the lobby and resolves once it has a process, not when it listens. What is wrong with the build is a value.
   * Throws when the machine is at fault (no processes, disk full); whatever was begun has been undone then.
   */
  start(spec: RunSpec): Promise<Started>
  /** Every run of this data folder that lives now, as the operating system says. Never what only a file remembers. */
  list(): Promise<Handle[]>
  /** Null while it runs. Asked again it answers the same, until `forget`. Cheap while it runs: asked every second. */
  exit(handle: Handle): Promise<Exit | null>
  /** Whether its program is stopped, and not ended: by a signal or a debugger. Cheap: asked every second. */
  isSuspended(handle: Handle): boolean
  /** Where its processes listen; null where the system does not show it. */
  listening(handle: Handle): Promise<ListeningSocket[] | null>
  /** What these use, by lobby id; without those that are gone. Cheap enough to be asked every five seconds. */
  usage(handles: readonly Handle[]): Map<string, Usage>
  /** What is known of a lobby's end without a handle: for a row that was written and perhaps never came to a spawn. */
  exitOf(lobby_id: string): Promise<Exit>
  /**
   * Ends it: SIGTERM to the program, after `grace_ms` SIGKILL to all of it. Resolves when it is gone; at once when it
   * is gone already. A second call with a shorter grace shortens the first.
   */
  stop(handle: Handle, grace_ms: number): Promise<void>
  /** Writes a line of the platform's own into the lobby's stderr log. */
  note(lobby_id: string, text: string): void
  /** The last lines of a stream, oldest first; none for an unknown lobby. */
  logs(lobby_id: string, stream: LogStream, lines_max: number): Promise<LogLine[]>
  /** Removes what is left of runs that have ended: control groups, and the folders beyond those that are kept for their logs. */
  sweep(): Promise<void>
  /** Lets go; what runs goes on. With `logger: 'end'` the logger ends too, once nothing runs any more. */
  close(how: { logger: 'end' | 'keep' }): Promise<void>
}
