// A driver starts one lobby, reports its state as the operating system sees it, and ends it. Which lobbies are wanted is
// decided by the reconcile loop, which reads the database. A run outlives the process that started it; `list` finds it.
import type { LogLine, LogStream } from '../../lobby-logs/files.ts'
import type { InputResult } from '../../lobby-logs/lobby-logs.ts'
import type { ImageStore } from '../images/image-store.ts'
import type { NetworkWish, RunNetwork } from '../network/lobby-networks.ts'
import type { Ports } from '../ports.ts'
import type { ListeningSocket } from '../sockets.ts'

/** Where a lobby sees its build, read-only. */
export const BUILD_MOUNT = '/build'
/** Where a lobby sees its writable folder, if it has a root of its own. */
export const SCRATCH_MOUNT = '/scratch'

/** The limits of one lobby. */
export type Tier = {
  /** Processor time in cores; fractions are allowed. */
  cpu_cores: number
  /** Memory, including anonymous pages, page cache, /tmp and /dev/shm. */
  memory_bytes: number
  /** Processes and threads. */
  pids_max: number
  /** Size of each private writable folder in memory, where the driver can limit it. */
  tmp_bytes: number
  /** Size of the disk with the lobby's writable folder. Where the machine cannot make disks, that folder is in memory. */
  disk_bytes: number
}

export type RunSpec = {
  /** A lobby is started at most once: a second start of the same id throws. */
  lobby_id: string
  /** Absolute path of the unpacked build. It is read-only for the lobby. */
  build_folder: string
  /** Set when the build is the root folder of a container image. */
  image?: ImageRoot | null
  /** The argv. The program is searched in the build, then among the platform's and the host's programs. */
  args: readonly string[]
  /** The environment without PATH, HOME and TMPDIR, which the driver sets. It contains a secret: never logged. */
  env: Readonly<Record<string, string>>
  tier: Tier
  /** Written into the lobby's writable folder before its program starts. */
  files?: readonly ScratchFile[]
  /** Whether `write` can write to its standard input. Otherwise that is /dev/null. */
  has_input?: boolean
  /** Whether its input and output are a terminal. What it writes is then in stdout. */
  has_terminal?: boolean
  /** From `takeNetwork`. Without it the lobby shares the network of the machine. */
  network?: RunNetwork | null
  /** Where it runs, for a driver with `nodes`. Without it the driver chooses a node, and the lobby has no ports. */
  place?: RunPlace | null
}

/** `ports`: number inside the lobby's network, and number by which the edge reaches it at the node's address. */
export type RunPlace = {
  node_id: string
  ports: readonly { inside: number; outside: number; protocol: 'tcp' | 'udp' }[]
}

/**
 * Why a machine that responds starts no lobby. `no_manager`: no manager of its Swarm takes requests. `not_available`: the
 * Swarm starts nothing on it: an operator has paused or drained it there, or its managers miss it.
 */
export type NodeRefusal = 'no_manager' | 'not_available'

/** A machine on which a driver runs lobbies. `regions`: null: those of the runner. */
export type DriverNode = {
  node_id: string
  regions: readonly string[] | null
  /** Null: it starts lobbies now. */
  refusal: NodeRefusal | null
  cpu_cores: number
  memory_mb: number
  /** Where the edge reaches the ports of its lobbies. */
  address: string
  ports: Ports
}

/** The machines of a driver whose lobbies run elsewhere. Each is a node of the platform. */
export type DriverNodes = {
  ids: readonly string[]
  /** Nodes that respond now. */
  here(): DriverNode[]
  /** Why no machine starts a lobby, also one that does not respond; null: some may. */
  refusalOfAll(): NodeRefusal | null
  /** The numbers of lobbies at this address; null: no node has it. */
  portsAt(address: string): Ports | null
  /** Where lobbies reach the platform. */
  services: string
}

/** How the server of a container image runs. `uid` and `gid`: what it sees itself as. `build_id`: names it in an engine. */
export type ImageRoot = {
  build_id?: string
  uid: number
  gid: number
  working_folder: string
  stop_signal: NodeJS.Signals
}

/** A text file. `path`: within the lobby's writable folder, which it cannot leave (contract/src/files-config.ts). */
export type ScratchFile = { path: string; content: string }

/** `container`: that of a container engine. */
export type Sandbox = 'bubblewrap' | 'container' | 'none'

/** Identifies one run across restarts of the runner and of the machine. Plain JSON. */
export type Handle = {
  lobby_id: string
  pid: number
  /**
   * Ticks since boot, field 22 of /proc/PID/stat. With boot_id it distinguishes a process from a later one of this pid. Empty
   * for a container whose processes this machine's /proc does not show.
   */
  start_time: string
  boot_id: string
  sandbox: Sandbox
  /** When it began, in milliseconds since the epoch by the machine's clock. */
  start_ts: number
  /** The uid that belongs to the lobby while it runs; null where lobbies run as the platform's user. */
  uid: number | null
  /** The name of its control group; null where there are none. */
  group: string | null
  /** Null: it shares the network of the machine. */
  network: RunNetwork | null
  /** The node where it runs, for a driver with `nodes`. */
  node_id?: string
}

/**
 * Why a run ended:
 * - `exit`: the program exited, with `exit_code`.
 * - `signal`: a signal ended it; `exit_code` is 128 + its number.
 * - `oom`, `pids`: it reached its limit of memory or of processes.
 * - `disk`: it failed, and its disk had no room.
 * - `no_such_file`: args[0] is neither in the build nor a program of the platform or the host.
 * - `not_executable`: args[0] exists without its executable bit, or is a program of another processor or system.
 * - `missing_library`: a library, the loader or the interpreter of the file is missing, or the C library is too old.
 * - `build_damaged`: nothing was started: the stored archive or its unpacked copy differs from the upload.
 * - `no_build`, `no_ports`: nothing was started: the build cannot be unpacked, or no port is free.
 * - `no_network`: nothing was started: a port has a fixed number, and lobbies share the network of the machine.
 * - `not_started`: the machine could not start it; the lobby's log says why.
 * - `stopped`: the platform ended it because it was no longer wanted.
 * - `lost`: it is gone for an unknown reason (a power cut, a kill -9 of its monitor, a crash before its start), or its node
 *   is away.
 */
export type ExitReason =
  | 'exit'
  | 'signal'
  | 'oom'
  | 'pids'
  | 'disk'
  | 'no_such_file'
  | 'not_executable'
  | 'missing_library'
  | 'build_damaged'
  | 'no_build'
  | 'no_ports'
  | 'no_network'
  | 'not_started'
  | 'stopped'
  | 'lost'

/**
 * The end of a run. `exit_code`: null when nothing ran, or the code is unknown. `cpu_ms`: processor time of all its
 * processes, in ms of one core; null when nothing ran, or no control group counted it. `ran`: when it lived, as the
 * machine's files say; null when nothing ran. A run with reason `lost` ends at the last moment at which it was known to
 * live.
 */
export type Exit = { exit_code: number | null; reason: ExitReason; cpu_ms: number | null; ran: Life | null }
export type Life = { start_ts: number; end_ts: number }

/** `cpu_ms`: since the start, in ms of one core. `memory_bytes`: now, without cached files. */
export type Usage = { cpu_ms: number; memory_bytes: number }

/** The exit of a lobby that never had a process. */
export function neverRan(reason: ExitReason): Exit {
  return { exit_code: null, reason, cpu_ms: null, ran: null }
}

/** `refused`: it never ran. `message`: a sentence for its developer, already in the lobby's stderr log. */
export type Started = { handle: Handle } | { refused: ExitReason; message: string }

export type Driver = {
  /** The column `driver` of lobby_runs. */
  name: 'process' | 'docker' | 'swarm'
  /** The sandbox of all lobbies, determined when the driver was opened. */
  sandbox: Sandbox
  /** Whether each lobby has a network of its own, so that all may listen on the same number. */
  has_own_network: boolean
  /** Null: lobbies run on this machine. */
  nodes: DriverNodes | null
  /** Where it has the images of builds; null: it runs them from folders. */
  images: ImageStore | null
  /** The lobby's writable folder, as its program sees it. */
  homeOf(lobby_id: string): string
  /**
   * A network for one lobby, to be passed to `start` and released if the start fails; null where lobbies share the network
   * of the machine. The end of the run releases it.
   */
  takeNetwork(wish: NetworkWish): Promise<RunNetwork | null>
  releaseNetwork(network: RunNetwork | null): void
  /**
   * Leads connections of the lobby to these ports of its own loopback interface to a port of this machine, where they have the
   * lobby's address.
   */
  redirect(network: RunNetwork, ports: readonly number[], to_port: number): Promise<void>
  /**
   * Starts the lobby. Resolves once it has a process, before it listens. A fault of the build is a value. Throws when the
   * machine is at fault (no processes, disk full), after everything was undone.
   */
  start(spec: RunSpec): Promise<Started>
  /** Every run of this data folder that lives now, as the operating system reports it. */
  list(): Promise<Handle[]>
  /**
   * Null while it runs. Later calls return the same exit until `sweep` has removed the lobby's folder. Cheap while it
   * runs: called every second.
   */
  exit(handle: Handle): Promise<Exit | null>
  /** Whether a signal or a debugger has stopped its program. Cheap: called every second. */
  isSuspended(handle: Handle): boolean
  /** The listening sockets of its processes; null where the system does not show them. */
  listening(handle: Handle): Promise<ListeningSocket[] | null>
  /** Usage by lobby id, without runs that are gone. Cheap enough for a call every five seconds. */
  usage(handles: readonly Handle[]): Promise<Map<string, Usage>>
  /** The exit of a lobby without a handle: its row was written, and its process may never have been started. */
  exitOf(lobby_id: string): Promise<Exit>
  /**
   * Ends the run: SIGTERM to the program, and after `grace_ms` SIGKILL to all its processes. Resolves when they are gone,
   * at once if they were gone before. A second call with a shorter grace shortens the first.
   */
  stop(handle: Handle, grace_ms: number): Promise<void>
  /**
   * Writes a line to the standard input of a lobby that was started with `has_input`, and `note` into its log. A server that
   * does not read its input delays this for seconds at most.
   */
  write(lobby_id: string, line: string, note: string): Promise<InputResult>
  /** Writes a line of the platform into the lobby's stderr log. */
  note(lobby_id: string, text: string): void
  /** The last lines of a stream, oldest first; none for an unknown lobby. */
  logs(lobby_id: string, stream: LogStream, lines_max: number): Promise<LogLine[]>
  /** Removes the control groups of ended runs, and the folders whose logs are no longer kept. */
  sweep(): Promise<void>
  /** Runs continue. With `logger: 'end'` the logger ends too, once nothing runs any more. */
  close(how: { logger: 'end' | 'keep' }): Promise<void>
}
