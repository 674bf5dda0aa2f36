// The process driver: a lobby is a process of this machine, under bubblewrap and in control groups of its own where the
// machine allows both. The operating system decides what runs. The folder of a lobby (lobby-folder.ts) only helps to find
// its processes, and is written by the lobby's own monitor.
//
// A lobby is: started (folder, groups, pipes, monitor) -> running -> ended (`exit` returns its exit, once and for all) ->
// swept.
import { once } from 'node:events'
import { closeSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LOG_STREAMS } from '../../../lobby-logs/files.ts'
import type { InputResult } from '../../../lobby-logs/lobby-logs.ts'
import { hasOutputPipe } from '../../../lobby-logs/local.ts'
import { isAlive, readBootId, readPageSize } from '../../../node/procfs.ts'
import { LoggerClient } from '../../logs/logger-client.ts'
import type { NetworkWish, RunNetwork } from '../../network/lobby-networks.ts'
import type { ListeningSocket } from '../../sockets.ts'
import {
  BUILD_MOUNT,
  type Driver,
  type Exit,
  type Handle,
  neverRan,
  type RunSpec,
  SCRATCH_MOUNT,
  type Started,
  type Usage,
} from '../driver.ts'
import type { Ending } from '../endings.ts'
import { listeningSocketsOf, type Machine, usageOfRuns } from '../inspect.ts'
import { changeTime, endTime, readEnded, readHandle, writeEnded } from '../lobby-folder.ts'
import { LobbyRecords, type RecordOptions } from '../lobby-records.ts'
import { identifyProgram, isSuspended } from '../program-process.ts'
import { findImageProgram, isImageFile, isImageFolder, noWorkingFolder } from '../programs/find-image-program.ts'
import { findProgram, hasFile, type Program, type ProgramFault } from '../programs/find-program.ts'
import { glibcOfMachine, withItsNeeds } from '../programs/program-needs.ts'
import { UID_FIRST } from '../uids.ts'
import { pathOf } from './bubblewrap.ts'
import { DiskWatch, type FullDisk } from './disk-watch.ts'
import { endRun, exitOfRun, killLeftovers, limitNote, logIsWhole } from './ending.ts'
import { type Host, type HostOptions, prepareHost } from './host.ts'
import { inputPipe, makeInputPipesFolder, removeInputPipe, writeInput } from './input-pipe.ts'
import { type ActiveRun, isUnreaped, launchRun, newRun } from './launch-run.ts'
import { scratchOf } from './lobby-command.ts'
import { terminalFault } from './lobby-terminal.ts'
import { asUser, inheritedFds } from './monitor.ts'
import { SpareMonitors } from './spare-monitors.ts'

/** After this time a folder without a recorded end is swept like that of an ended lobby: no caller asked for its end. */
const UNASKED_MS_MAX = 60 * 60_000
/** How long `close` waits for control groups to become empty: dead processes stay in them until they are reaped. */
const GROUPS_WAIT_MS_MAX = 1_000
const GROUPS_POLL_MS = 10
const NEEDS_SANDBOX =
  'The build is a container image, and the lobbies of this machine run without bubblewrap. Its operator must install bubblewrap, or remove MUSTER_SANDBOX=off.'
const FULL_DISK: Record<FullDisk, string> = {
  bytes: "The lobby's disk was full when the server ended.",
  files: "The lobby's disk had no room for a further file when the server ended.",
}
/** Precision of the end of a run that neither this process nor the run's monitor saw end. */
const SEEN_MS = 1_000

export type ProcessDriverOptions = HostOptions & RecordOptions

/** Prepares the machine (host.ts, with its errors), and starts the logger if there is none. */
export async function openProcessDriver(options: ProcessDriverOptions): Promise<Driver> {
  return new ProcessDriver(options, await prepareHost(options))
}

class ProcessDriver extends LobbyRecords<ActiveRun> implements Driver {
  readonly name = 'process'
  readonly images = null
  readonly has_own_network: boolean
  readonly nodes = null
  readonly sandbox: Handle['sandbox']
  readonly #options: ProcessDriverOptions
  readonly #host: Host
  readonly #machine: Machine
  readonly #logger: LoggerClient
  readonly #monitors: SpareMonitors
  /** Ended runs whose log is still being read. */
  readonly #releasing = new Set<Promise<void>>()
  readonly #disks: DiskWatch | null
  /** Its time of change is the last moment at which a runner of this folder was alive. */
  readonly #seen_file: string
  readonly #formerly_seen_ts: number | null
  readonly #seen_timer: NodeJS.Timeout
  /** Whether a trial has shown that this machine makes terminals. */
  #makes_terminals = false

  constructor(options: ProcessDriverOptions, host: Host) {
    const { lobbies_folder, cgroups } = host
    super(lobbies_folder, options, 0o711)
    this.#options = options
    this.#host = host
    this.#machine = { boot_id: readBootId(), page_size: readPageSize(), cgroups }
    this.sandbox = host.bubblewrap ? 'bubblewrap' : 'none'
    this.has_own_network = host.networks !== null
    this.#logger = new LoggerClient(lobbies_folder)
    makeInputPipesFolder(lobbies_folder)
    this.#monitors = new SpareMonitors(cgroups, host.disks, inheritedFds())
    this.#disks = host.disks === null ? null : new DiskWatch(host.disks.mount_point)
    this.#seen_file = join(lobbies_folder, 'seen')
    this.#formerly_seen_ts = changeTime(this.#seen_file)
    this.#touchSeen()
    this.#seen_timer = setInterval(() => this.#touchSeen(), SEEN_MS)
  }

  async takeNetwork(wish: NetworkWish): Promise<RunNetwork | null> {
    return (await this.#host.networks?.take(wish)) ?? null
  }

  releaseNetwork(network: RunNetwork | null): void {
    if (network !== null) this.#host.networks?.release(network)
  }

  async redirect(network: RunNetwork, ports: readonly number[], to_port: number): Promise<void> {
    await this.#host.networks?.redirect(network, ports, to_port)
  }

  async start(spec: RunSpec): Promise<Started> {
    const { lobby_id } = spec
    const folder = this.makeFolder(lobby_id)
    const found = this.#findProgram(spec)
    const program = spec.has_terminal && !('refused' in found) ? ((await this.#terminalFault()) ?? found) : found
    if ('refused' in program) {
      this.note(lobby_id, program.message)
      writeEnded(folder, neverRan(program.refused))
      return program
    }
    const run = newRun({ group: null, uid: this.#host.gives_uids ? this.uids.take() : null })
    return this.launch(lobby_id, folder, run, async () => {
      run.handle = await launchRun(
        {
          host: this.#host,
          machine: this.#machine,
          sandbox: this.sandbox,
          logger: this.#logger,
          monitors: this.#monitors,
          onEnd: this.#options.onEnd,
        },
        { folder, spec, program: [program.command, ...spec.args.slice(1)], input: this.#inputOf(lobby_id) },
        run,
      )
      this.#logger.attach(lobby_id)
      if (run.handle.network !== null) this.#host.networks?.recorded(run.handle.network)
      return { handle: run.handle }
    })
  }

  protected async giveUp(run: ActiveRun, lobby_id: string): Promise<void> {
    this.forget(lobby_id)
    // If its pipes were made, the logger reads them to their end and removes them.
    this.#logger.attach(lobby_id)
    this.#removeGroup(run.facts.group)
  }

  #findProgram({ build_folder, image, args, env }: RunSpec): Program {
    const name = args[0] ?? ''
    const search_path = pathOf({ env, image })
    const { bubblewrap } = this.#host
    if (!image) {
      const mounted_at = bubblewrap ? BUILD_MOUNT : build_folder
      const has = (path: string): boolean => hasFile(build_folder, mounted_at, !bubblewrap, path)
      const view = { has, search_path, glibc: glibcOfMachine(), where: 'on this machine' }
      return withItsNeeds(findProgram(build_folder, mounted_at, name), name, view)
    }
    if (bubblewrap === null) return { refused: 'not_started', message: NEEDS_SANDBOX }
    if (!isImageFolder(build_folder, image.working_folder)) return noWorkingFolder(image.working_folder)
    const found = findImageProgram(build_folder, image.working_folder, search_path, name)
    const has = (path: string): boolean => isImageFile(build_folder, path)
    return withItsNeeds(found, name, { has, search_path, glibc: null, where: 'in the image' })
  }

  /** Tried with each start until it works once: an operator may install what is missing. */
  async #terminalFault(): Promise<ProgramFault | null> {
    if (this.#makes_terminals) return null
    const fault = await terminalFault(asUser(this.#host.gives_uids ? UID_FIRST : null))
    this.#makes_terminals = fault === null
    return fault
  }

  homeOf(lobby_id: string): string {
    return this.#host.bubblewrap ? SCRATCH_MOUNT : scratchOf(this.folders.of(lobby_id))
  }

  async list(): Promise<Handle[]> {
    const handles: Handle[] = []
    for (const lobby_id of this.folders.unfinished.ids()) {
      // A runner may have been killed before it named the lobby to the logger, which reads each pipe once.
      if (!this.runs.has(lobby_id)) this.#logger.attach(lobby_id)
      const handle = this.runs.get(lobby_id)?.handle ?? readHandle(this.folders.of(lobby_id), lobby_id)
      if (handle === null || !this.#isAlive(handle)) continue
      handles.push(handle)
      if (this.runs.has(lobby_id)) continue
      this.adopt(lobby_id, newRun({ group: handle.group, uid: handle.uid }, handle))
    }
    return handles
  }

  async exit(handle: Handle): Promise<Exit | null> {
    const folder = this.folders.of(handle.lobby_id)
    if (this.#isAlive(handle)) {
      this.#disks?.open(handle.lobby_id, handle.pid)
      return null
    }
    const ended = readEnded(folder)
    if (ended !== null) return ended
    const run = this.runs.get(handle.lobby_id)
    // The process is dead, but Node has not reported its exit code yet. It does so in a moment.
    if (run?.child && isUnreaped(run.child)) return null
    if (run === undefined) return this.#recordEnd(folder, handle, null)
    run.exit ??= this.#recordEnd(folder, handle, run.child?.exitCode ?? null).catch((error: unknown) => {
      // On a full disk the end cannot be written: the next call tries again.
      run.exit = null
      throw error
    })
    return run.exit
  }

  async exitOf(lobby_id: string): Promise<Exit> {
    const folder = this.folders.of(lobby_id)
    const handle = readHandle(folder, lobby_id)
    const known = handle === null ? readEnded(folder) : await this.exit(handle)
    if (known !== null) return known
    if (handle !== null) throw new Error(`Lobby ${lobby_id} runs.`)
    // Killed between its folder and its process. The folder is swept once its end is recorded.
    const lost = neverRan('lost')
    writeEnded(folder, lost)
    return lost
  }

  isSuspended(handle: Handle): boolean {
    const run = this.runs.get(handle.lobby_id)
    if (run === undefined) return false
    run.program ??= identifyProgram(this.folders.of(handle.lobby_id), handle)
    return run.program !== null && isSuspended(run.program)
  }

  listening(handle: Handle): Promise<ListeningSocket[] | null> {
    return listeningSocketsOf(handle.pid)
  }

  async usage(handles: readonly Handle[]): Promise<Map<string, Usage>> {
    return usageOfRuns(handles, this.#machine)
  }

  write(lobby_id: string, line: string, note: string): Promise<InputResult> {
    return writeInput(this.#inputOf(lobby_id), line, () => this.folders.noteInput(lobby_id, note))
  }

  async close(how: { logger: 'end' | 'keep' }): Promise<void> {
    clearInterval(this.#seen_timer)
    this.#touchSeen()
    await Promise.all(this.#releasing)
    await this.sweepIsOver()
    this.#disks?.closeAll()
    await this.#monitors.close()
    await this.#logger.close(how)
    const { networks } = this.#host
    await (how.logger === 'keep' ? networks?.close() : networks?.remove())
    const { cgroups } = this.#machine
    if (how.logger === 'keep') {
      this.#sweepGroups()
      // Fails while a lobby has one of the groups.
      cgroups?.close()
      return
    }
    for (let waited_ms = 0; waited_ms < GROUPS_WAIT_MS_MAX; waited_ms += GROUPS_POLL_MS) {
      this.#sweepGroups()
      if (cgroups === null || cgroups.close()) break
      await sleep(GROUPS_POLL_MS)
    }
  }

  #inputOf(lobby_id: string): string {
    return inputPipe(this.#host.lobbies_folder, lobby_id)
  }

  #isAlive(handle: Handle): boolean {
    return isAlive(handle, this.#machine.boot_id)
  }

  #touchSeen(): void {
    writeFileSync(this.#seen_file, '', { mode: 0o600 })
  }

  protected async endRun(handle: Handle, ending: Ending): Promise<void> {
    const { boot_id, cgroups } = this.#machine
    await endRun(this.folders.of(handle.lobby_id), handle, ending, boot_id, cgroups)
    const child = this.runs.get(handle.lobby_id)?.child
    if (!child || !isUnreaped(child)) return
    // A child does not keep this process alive; waiting for its end must.
    child.ref()
    await once(child, 'exit')
  }

  async #recordEnd(folder: string, handle: Handle, monitor_code: number | null): Promise<Exit> {
    const { boot_id, cgroups } = this.#machine
    const end_ts = this.#endOf(folder, handle)
    killLeftovers(folder, handle, boot_id, cgroups)
    const full = this.#disks?.close(handle.lobby_id) ?? null
    if (full !== null) this.note(handle.lobby_id, FULL_DISK[full])
    const how = await exitOfRun(folder, handle, { monitor_code, has_full_disk: full !== null }, cgroups)
    if (handle.group !== null && cgroups !== null) {
      const text = limitNote(how.reason, handle.group, cgroups)
      if (text !== null) this.note(handle.lobby_id, text)
    }
    const cpu_ms = handle.group === null ? null : (cgroups?.cpuTime(handle.group) ?? null)
    const ended = { ...how, cpu_ms, ran: { start_ts: handle.start_ts, end_ts } }
    writeEnded(folder, ended)
    this.#removeGroup(handle.group)
    this.releaseNetwork(handle.network)
    // The exit is known now; the pipes are released when the logger has read them.
    const releasing = logIsWhole(folder).then(() => {
      this.forget(handle.lobby_id)
      this.#releasing.delete(releasing)
    })
    this.#releasing.add(releasing)
    return ended
  }

  /** When the monitor wrote the end; where the monitor was killed too, when the run was last known to live. */
  #endOf(folder: string, handle: Handle): number {
    const last_seen_ts = this.runs.has(handle.lobby_id)
      ? this.#options.now()
      : (this.#formerly_seen_ts ?? handle.start_ts)
    return Math.max(handle.start_ts, endTime(folder) ?? last_seen_ts)
  }

  protected override forget(lobby_id: string): void {
    for (const fd of this.runs.get(lobby_id)?.kept_pipes ?? []) closeSync(fd)
    super.forget(lobby_id)
  }

  #removeGroup(group: string | null): void {
    if (group === null) return
    this.#machine.cgroups?.kill(group)
    this.#machine.cgroups?.remove(group)
  }

  protected async sweepOnce(): Promise<void> {
    this.#logger.ensure()
    this.#sweepGroups()
    await this.#sweepNetworks()
    for (const lobby_id of this.folders.unfinished.ids()) {
      if (!this.#isOver(lobby_id)) continue
      removeInputPipe(this.#inputOf(lobby_id))
      await this.ended_logs.trim(lobby_id)
    }
    await this.ended_logs.sweep()
  }

  /** No process lives, the end is recorded, and the log is whole. */
  #isOver(lobby_id: string): boolean {
    const folder = this.folders.of(lobby_id)
    if (this.#mayLive(lobby_id) || LOG_STREAMS.some((stream) => hasOutputPipe(folder, stream))) return false
    return readEnded(folder) !== null || (changeTime(folder) ?? 0) < this.#options.now() - UNASKED_MS_MAX
  }

  /** By the memory of this process and by the system: a living run must not be swept. */
  #mayLive(lobby_id: string): boolean {
    if (this.runs.has(lobby_id)) return true
    const handle = readHandle(this.folders.of(lobby_id), lobby_id)
    return handle !== null && this.#isAlive(handle)
  }

  async #sweepNetworks(): Promise<void> {
    const { networks } = this.#host
    if (networks === null) return
    await networks.sweep(this.#livingHandles().flatMap(({ network }) => network ?? []))
  }

  #livingHandles(): Handle[] {
    const handles = new Map<string, Handle>()
    for (const [lobby_id, { handle }] of this.runs) if (handle !== null) handles.set(lobby_id, handle)
    for (const lobby_id of this.folders.unfinished.ids()) {
      const handle = handles.get(lobby_id) ?? readHandle(this.folders.of(lobby_id), lobby_id)
      if (handle !== null) handles.set(lobby_id, handle)
    }
    return [...handles.values()].filter((handle) => this.#isAlive(handle))
  }

  /** Ends every process in a group that belongs neither to a living lobby nor to a spare monitor. */
  #sweepGroups(): void {
    const groups = this.#machine.cgroups?.list() ?? []
    if (groups.length === 0) return
    const used = new Set<string | null>()
    for (const { facts, handle } of this.runs.values()) if (handle === null) used.add(facts.group)
    for (const { group } of this.#livingHandles()) used.add(group)
    for (const group of groups) if (!used.has(group) && !this.#monitors.isSpare(group)) this.#removeGroup(group)
  }
}
