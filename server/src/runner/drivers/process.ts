// The process driver: a lobby is a process of this machine, under bubblewrap and in control groups of its own as far as
// the machine lets it. The truth of what runs is the operating system's; the folder of a lobby (lobby-folder.ts) only
// says where to look, and is written by the lobby's own monitor.
//
// A lobby is: started (folder, groups, pipes, monitor) -> running -> ended (`exit` tells how, once and for all) -> swept.
import type { ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, chownSync, closeSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LOG_STREAMS, logFile, newestFile } from '../../lobby-logs/files.ts'
import { folderOfLobby, hasOutputPipe } from '../../lobby-logs/local.ts'
import { lastLines } from '../../lobby-logs/read.ts'
import {
  isAlive,
  type ProcessId,
  readBootId,
  readPageSize,
  socketInodesOf,
  treeOf,
  usageOfTrees,
} from '../../procfs.ts'
import { openLoggerClient } from '../logs/client.ts'
import { openEndedLogs } from '../logs/ended.ts'
import { platformLine } from '../logs/lines.ts'
import { readListening } from '../sockets.ts'
import { BUILD_MOUNT, bubblewrapArgs, bubblewrapCommand } from './bubblewrap.ts'
import { type Driver, type Exit, type Handle, neverRan, type RunSpec, type Started, type Usage } from './driver.ts'
import { type Ending, endRun, exitOfRun, killLeftovers, logIsWhole } from './ending.ts'
import { type Host, type HostOptions, prepareHost } from './host.ts'
import { changeTime, endTime, readEnded, readHandle, writeEnded, writeRunFile } from './lobby-folder.ts'
import { asUser, exportsOf, inheritedFds, launch, plainCommand } from './monitor.ts'
import { openMonitors } from './monitors.ts'
import { identifyProgram, isSuspended } from './program.ts'
import { findProgram, HOST_PROGRAM_FOLDERS } from './programs.ts'
import { createUids, UID_COUNT } from './uids.ts'
import { openUnfinished } from './unfinished.ts'

/** Of one lobby, and of one of its processes, that are looked at for the sockets of its server. */
const PROCESSES_MAX = 256
const FDS_MAX = 4_096

/** After this the folder of a lobby whose end nobody has asked for is put away like the others. */
const UNASKED_MS_MAX = 60 * 60_000
const GROUPS_WAIT_MS_MAX = 1_000
const GROUPS_POLL_MS = 10
/** How well it is known until when a run lived whose end nobody saw, not even its monitor. */
const SEEN_MS = 1_000

export type ProcessDriverOptions = HostOptions & {
  now: () => number
  /** How long the logs of an ended lobby are kept at most, and how much of the disk all of them take; null: no limit. */
  ended_kept_ms: number | null
  ended_bytes_max: number | null
  /** A hint that this lobby may have ended. Without it an end is found by asking `exit`. */
  onEnd?: (lobby_id: string) => void
}

/** What this process knows of a run beyond its folder. `child` is null when the monitor is not a child of this process. */
type Live = {
  group: string | null
  uid: number | null
  handle: Handle | null
  child: ChildProcess | null
  exit: Promise<Exit> | null
  /** Null until somebody asks for it, and it is there. */
  program: ProcessId | null
  kept_pipes: number[]
}

/** Prepares the machine (host.ts, with its errors), and starts the logger if there is none. */
export async function createProcessDriver(options: ProcessDriverOptions): Promise<Driver> {
  const host = await prepareHost(options)
  const { lobbies_folder, cgroups } = host
  const boot_id = readBootId()
  const page_size = readPageSize()
  const unfinished = openUnfinished(lobbies_folder)
  const logger = openLoggerClient(lobbies_folder)
  const monitors = openMonitors(cgroups, inheritedFds())
  const sandbox: Handle['sandbox'] = host.bubblewrap ? 'bubblewrap' : 'none'
  const uids = createUids(randomInt(UID_COUNT))
  const live = new Map<string, Live>()
  const leaving = new Set<Promise<void>>()
  const endings = new Map<string, Ending>()
  // Its age says when somebody last looked after the lobbies: until then those lived that nobody saw end since.
  const seen_file = join(lobbies_folder, 'seen')
  const formerly_seen_ts = changeTime(seen_file)
  const touchSeen = (): void => writeFileSync(seen_file, '', { mode: 0o600 })
  touchSeen()
  const seeing = setInterval(touchSeen, SEEN_MS)
  const ended_logs = openEndedLogs(lobbies_folder, unfinished, options)
  let sweeping: Promise<void> | null = null
  const folderOf = (lobby_id: string): string => folderOfLobby(lobbies_folder, lobby_id)

  function note(lobby_id: string, text: string): void {
    const folder = folderOf(lobby_id)
    if (!existsSync(folder)) makeFolder(lobby_id)
    const file = logFile(folder, 'stderr', newestFile(folder, 'stderr'))
    appendFileSync(file, platformLine(text, options.now()), { mode: 0o600 })
  }

  /** Throws when it is there. */
  function makeFolder(lobby_id: string): string {
    const folder = folderOf(lobby_id)
    if (!existsSync(folder)) unfinished.add(lobby_id)
    mkdirSync(folder, { mode: 0o711 })
    return folder
  }

  async function start(spec: RunSpec): Promise<Started> {
    const { lobby_id } = spec
    if (live.has(lobby_id)) throw new Error(`Lobby ${lobby_id} has been started before.`)
    const folder = makeFolder(lobby_id)
    const program = findProgram(
      spec.build_folder,
      host.bubblewrap ? BUILD_MOUNT : spec.build_folder,
      spec.args[0] ?? '',
    )
    if ('refused' in program) {
      note(lobby_id, program.message)
      writeEnded(folder, neverRan(program.refused))
      return program
    }
    const run: Live = {
      group: null,
      uid: host.gives_uids ? uids.take() : null,
      handle: null,
      child: null,
      exit: null,
      program: null,
      kept_pipes: [],
    }
    live.set(lobby_id, run)
    try {
      run.handle = await launchMonitor(folder, spec, [program.command, ...spec.args.slice(1)], run)
      logger.attach(lobby_id)
      return { handle: run.handle }
    } catch (error) {
      letGo(lobby_id)
      // Its pipes, if they were made, are read to their end and removed.
      logger.attach(lobby_id)
      removeGroup(run.group)
      writeEnded(folder, neverRan('not_started'))
      throw error
    }
  }

  async function launchMonitor(folder: string, spec: RunSpec, program: string[], run: Live): Promise<Handle> {
    const { bubblewrap } = host
    const { uid } = run
    const monitor = monitors.take()
    run.group = monitor.group
    const output = logger.openPipes(spec.lobby_id, uid)
    run.kept_pipes = output.kept
    try {
      if (monitor.group !== null) cgroups?.limit(monitor.group, spec.tier)
      const about = { boot_id, sandbox, uid, group: monitor.group }
      writeRunFile(folder, about)
      const command = bubblewrap
        ? [...asUser(uid), ...bubblewrapCommand(spec.lobby_id, bubblewrap.disable_userns), ...program]
        : plainCommand(spec.lobby_id, uid, program)
      const args = bubblewrap ? bubblewrapArgs(host.files, spec) : exportsOf(plainEnvironment(host, folder, spec, uid))
      const working_folder = bubblewrap ? '/' : spec.build_folder
      await launch(monitor, { folder, command, args, output: output.paths, working_folder, uid })
      run.child = monitor.child
      monitor.child.once('exit', () => options.onEnd?.(spec.lobby_id))
      // It may have ended between the word that it is launched and this one.
      if (!isUnreaped(monitor.child)) options.onEnd?.(spec.lobby_id)
      const handle = readHandle(folder, spec.lobby_id)
      if (handle === null) throw new Error('The monitor of a lobby has not said who it is.')
      return handle
    } catch (error) {
      monitor.child.kill('SIGKILL')
      throw error
    } finally {
      // The lobby has opened the pipes by itself. Until then they must not look finished to the logger.
      closeSync(output.stdout)
      closeSync(output.stderr)
    }
  }

  /** Not only by what this process remembers: nothing that lives may be swept. */
  function mayLive(lobby_id: string): boolean {
    if (live.has(lobby_id)) return true
    const handle = readHandle(folderOf(lobby_id), lobby_id)
    return handle !== null && isAlive(handle, boot_id)
  }

  /** Nothing lives, its end is written down, and its log is whole. */
  function isOver(lobby_id: string): boolean {
    const folder = folderOf(lobby_id)
    if (mayLive(lobby_id) || LOG_STREAMS.some((stream) => hasOutputPipe(folder, stream))) return false
    return readEnded(folder) !== null || (changeTime(folder) ?? 0) < options.now() - UNASKED_MS_MAX
  }

  function removeGroup(group: string | null): void {
    if (group === null) return
    cgroups?.kill(group)
    cgroups?.remove(group)
  }

  function letGo(lobby_id: string): void {
    const run = live.get(lobby_id)
    for (const fd of run?.kept_pipes ?? []) closeSync(fd)
    if (run?.uid != null) uids.release(run.uid)
    live.delete(lobby_id)
  }

  /** Ends what runs in groups that belong to no lobby that lives, and to no monitor that waits for one. */
  function sweepGroups(): void {
    const groups = cgroups?.list() ?? []
    if (groups.length === 0) return
    const used = new Set<string | null>()
    for (const { group, handle } of live.values()) if (handle === null || isAlive(handle, boot_id)) used.add(group)
    for (const lobby_id of unfinished.ids()) {
      const handle = readHandle(folderOf(lobby_id), lobby_id)
      if (handle !== null && isAlive(handle, boot_id)) used.add(handle.group)
    }
    for (const group of groups) if (!used.has(group) && !monitors.isSpare(group)) removeGroup(group)
  }

  async function sweepOnce(): Promise<void> {
    logger.ensure()
    sweepGroups()
    for (const lobby_id of unfinished.ids()) {
      if (isOver(lobby_id)) await ended_logs.take(lobby_id)
    }
    await ended_logs.sweep()
  }

  async function exit(handle: Handle): Promise<Exit | null> {
    const folder = folderOf(handle.lobby_id)
    if (isAlive(handle, boot_id)) return null
    const ended = readEnded(folder)
    if (ended !== null) return ended
    const run = live.get(handle.lobby_id)
    // Dead, but Node has not said so yet; it will in a moment, with the code.
    if (run?.child && isUnreaped(run.child)) return null
    if (run === undefined) return settle(folder, handle, null)
    run.exit ??= settle(folder, handle, run.child?.exitCode ?? null).catch((error: unknown) => {
      // On a full disk the end could not be written: the next caller tries again.
      run.exit = null
      throw error
    })
    return run.exit
  }

  async function settle(folder: string, handle: Handle, monitor_code: number | null): Promise<Exit> {
    const end_ts = endOf(folder, handle)
    killLeftovers(folder, handle, boot_id, cgroups)
    const how = await exitOfRun(folder, handle, monitor_code, cgroups)
    const cpu_ms = handle.group === null ? null : (cgroups?.cpuTime(handle.group) ?? null)
    const ended = { ...how, cpu_ms, ran: { start_ts: handle.start_ts, end_ts } }
    writeEnded(folder, ended)
    removeGroup(handle.group)
    // The exit is known; the pipes are let go when the logger has read them.
    const letting_go = logIsWhole(folder).then(() => {
      letGo(handle.lobby_id)
      leaving.delete(letting_go)
    })
    leaving.add(letting_go)
    return ended
  }

  /** As its monitor wrote it down; where that was killed too, when it was last known to live. */
  function endOf(folder: string, handle: Handle): number {
    const last_seen_ts = live.has(handle.lobby_id) ? options.now() : (formerly_seen_ts ?? handle.start_ts)
    return Math.max(handle.start_ts, endTime(folder) ?? last_seen_ts)
  }

  /** Null: it has no group, or not one in which both are counted. */
  function usageOfGroup({ group }: Handle): Usage | null {
    const cpu_ms = group === null ? null : (cgroups?.cpuTime(group) ?? null)
    const memory_bytes = group === null ? null : (cgroups?.memory(group) ?? null)
    return cpu_ms === null || memory_bytes === null ? null : { cpu_ms, memory_bytes }
  }

  async function end(handle: Handle, ending: Ending): Promise<void> {
    await endRun(folderOf(handle.lobby_id), handle, ending, boot_id, cgroups)
    const child = live.get(handle.lobby_id)?.child
    if (!child || !isUnreaped(child)) return
    // It does not keep this process alive; whoever waits for its end does.
    child.ref()
    await once(child, 'exit')
  }

  return {
    name: 'process',
    sandbox,
    start,
    exit,
    note,

    async list() {
      const handles: Handle[] = []
      for (const lobby_id of unfinished.ids()) {
        const handle = live.get(lobby_id)?.handle ?? readHandle(folderOf(lobby_id), lobby_id)
        if (handle === null || !isAlive(handle, boot_id)) continue
        handles.push(handle)
        if (live.has(lobby_id)) continue
        const { group, uid } = handle
        live.set(lobby_id, { group, uid, handle, child: null, exit: null, program: null, kept_pipes: [] })
        if (handle.uid !== null) uids.hold(handle.uid)
      }
      return handles
    },

    isSuspended(handle) {
      const run = live.get(handle.lobby_id)
      if (run === undefined) return false
      run.program ??= identifyProgram(folderOf(handle.lobby_id), handle)
      return run.program !== null && isSuspended(run.program)
    },

    async listening(handle) {
      const inodes = treeOf(handle.pid, PROCESSES_MAX).map((pid) => socketInodesOf(pid, FDS_MAX))
      // A process whose files are not shown is left out, unless that is all of them.
      if (inodes.every((some) => some === null)) return null
      const of_lobby = new Set(inodes.flatMap((some) => some ?? []))
      return [...(await readListening('tcp', of_lobby)), ...(await readListening('udp', of_lobby))]
    },

    usage(handles) {
      const found = new Map<string, Usage>()
      const without_group: Handle[] = []
      for (const handle of handles.filter((one) => isAlive(one, boot_id))) {
        const usage = usageOfGroup(handle)
        if (usage === null) without_group.push(handle)
        else found.set(handle.lobby_id, usage)
      }
      if (without_group.length === 0) return found
      const pids = without_group.map(({ pid }) => pid)
      const trees = usageOfTrees(pids, page_size)
      for (const { lobby_id, pid } of without_group) {
        const usage = trees.get(pid)
        if (usage !== undefined) found.set(lobby_id, usage)
      }
      return found
    },

    async exitOf(lobby_id) {
      const folder = folderOf(lobby_id)
      const handle = readHandle(folder, lobby_id)
      const known = handle === null ? readEnded(folder) : await exit(handle)
      if (known !== null) return known
      if (handle !== null) throw new Error(`Lobby ${lobby_id} runs.`)
      return neverRan('lost')
    },

    async stop(handle, grace_ms) {
      const deadline_ms = performance.now() + grace_ms
      const known = endings.get(handle.lobby_id)
      if (known !== undefined) {
        known.deadline_ms = Math.min(known.deadline_ms, deadline_ms)
        return known.done
      }
      const ending: Ending = { deadline_ms, done: Promise.resolve() }
      ending.done = end(handle, ending).finally(() => endings.delete(handle.lobby_id))
      endings.set(handle.lobby_id, ending)
      return ending.done
    },

    logs: async (lobby_id, stream, lines_max) => (await lastLines(folderOf(lobby_id), stream, lines_max)).lines,

    sweep() {
      sweeping ??= sweepOnce().finally(() => {
        sweeping = null
      })
      return sweeping
    },

    async close(how) {
      clearInterval(seeing)
      touchSeen()
      await Promise.all(leaving)
      // What it says when it fails is for whoever asked for it.
      await sweeping?.catch(() => {})
      await monitors.close()
      await logger.close(how)
      if (how.logger === 'keep') return
      // Dead processes stay in their groups until whoever is their parent by now has reaped them.
      for (let waited_ms = 0; waited_ms < GROUPS_WAIT_MS_MAX; waited_ms += GROUPS_POLL_MS) {
        sweepGroups()
        if (cgroups === null || cgroups.close()) break
        await sleep(GROUPS_POLL_MS)
      }
    },
  }
}

function isUnreaped(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

/** Two folders of the lobby's own stand for the private ones of the sandbox. Nothing bounds them but the disk. */
function plainEnvironment(host: Host, folder: string, spec: RunSpec, uid: number | null): Record<string, string> {
  const own = { HOME: join(folder, 'scratch'), TMPDIR: join(folder, 'tmp') }
  for (const path of Object.values(own)) {
    mkdirSync(path, { mode: 0o700 })
    if (uid !== null) chownSync(path, uid, uid)
  }
  return { ...spec.env, PATH: [host.programs_folder, ...HOST_PROGRAM_FOLDERS].join(':'), ...own }
}
