// The docker driver: a lobby is a container of an engine on this machine. The engine decides what runs, and outlives the
// runner. The container's name and labels identify the lobby; its folder has its log, its metrics and its exit.
//
// A lobby is: started (folder, group, container) -> running -> ended (`exit` returns its exit, once and for all) -> swept
// (container, volume and group are removed).
//
// The build is mounted read-only into a base image, or is an image itself (engine-images.ts). Where the platform may make control groups, each container is below a
// group of its own (../cgroups.ts), which stays when the container is gone: it counts processor time to the end.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { InputResult } from '../../../lobby-logs/lobby-logs.ts'
import { childrenOf, identityOf, isAlive, type ProcessId, readBootId, readPageSize } from '../../../node/procfs.ts'
import type { NetworkWish, RunNetwork } from '../../network/lobby-networks.ts'
import type { ListeningSocket } from '../../sockets.ts'
import {
  type Driver,
  type Exit,
  type Handle,
  type RunSpec,
  SCRATCH_MOUNT,
  type Started,
  type Usage,
} from '../driver.ts'
import type { Ending } from '../endings.ts'
import { listeningSocketsOf, type Machine, usageOfRuns } from '../inspect.ts'
import { readEnded, writeEnded } from '../lobby-folder.ts'
import { LobbyRecords, type RecordOptions } from '../lobby-records.ts'
import { isSuspended } from '../program-process.ts'
import { type ContainerFacts, type ContainerInspect, containerName, factsOf, handleOf } from './container.ts'
import { containersOf, endContainer, removeContainer, sweepContainers, trimEnded } from './end-container.ts'
import { EngineImages } from './engine-images.ts'
import { exitOfContainer } from './exit.ts'
import { type DockerHost, type DockerHostOptions, prepareDockerHost } from './host.ts'
import { ImagePrograms } from './image-programs.ts'
import { ContainerInputs } from './input.ts'
import { ContainerOutput, markOutputOpen } from './output.ts'
import { startContainer } from './start-container.ts'
import { usageOfContainers } from './usage.ts'

/** How long an exit waits for its log: complete a moment after the exit, unless the engine restarts. */
const LOG_WAIT_MS_MAX = 5_000
/** How long `close` waits for control groups to become empty. */
const GROUPS_WAIT_MS_MAX = 1_000
const GROUPS_POLL_MS = 50

export type DockerDriverOptions = DockerHostOptions & RecordOptions

/** What this process knows of a run. `handle`: null while its container is being made. */
type ActiveRun = {
  facts: ContainerFacts
  handle: Handle | null
  output: ContainerOutput | null
  program: ProcessId | null
  exit: Promise<Exit | null> | null
}

/** Throws a StartError where the engine cannot be used. */
export async function openDockerDriver(options: DockerDriverOptions): Promise<Driver> {
  const host = await prepareDockerHost(options)
  return new DockerDriver(options, host, await EngineImages.open(host.engine, host.platform, options.now))
}

class DockerDriver extends LobbyRecords<ActiveRun> implements Driver {
  readonly name = 'docker'
  readonly nodes = null
  readonly sandbox = 'container'
  readonly has_own_network: boolean
  readonly images: EngineImages
  readonly #options: DockerDriverOptions
  readonly #host: DockerHost
  readonly #machine: Machine
  readonly #inputs: ContainerInputs
  readonly #programs: ImagePrograms
  #is_closed = false

  constructor(options: DockerDriverOptions, host: DockerHost, images: EngineImages) {
    super(host.lobbies_folder, options, 0o700)
    this.images = images
    this.#options = options
    this.#host = host
    this.has_own_network = host.networks !== null
    this.#machine = { boot_id: readBootId(), page_size: readPageSize(), cgroups: host.cgroups }
    this.#inputs = new ContainerInputs(host.engine)
    this.#programs = new ImagePrograms(host.engine)
  }

  homeOf(): string {
    return SCRATCH_MOUNT
  }

  async takeNetwork(wish: NetworkWish): Promise<RunNetwork | null> {
    return (await this.#host.networks?.lobbies.take(wish)) ?? null
  }

  releaseNetwork(network: RunNetwork | null): void {
    if (network !== null) this.#host.networks?.lobbies.release(network)
  }

  async redirect(network: RunNetwork, ports: readonly number[], to_port: number): Promise<void> {
    await this.#host.networks?.lobbies.redirect(network, ports, to_port)
  }

  async start(spec: RunSpec): Promise<Started> {
    const { lobby_id } = spec
    const folder = this.makeFolder(lobby_id)
    const run = this.#newRun(spec)
    return this.launch(lobby_id, folder, run, async () => {
      const means = { host: this.#host, images: this.images, programs: this.#programs }
      const started = await startContainer(means, spec, run.facts)
      if ('refused' in started) return started
      run.handle = started.handle
      if (run.facts.network !== null) this.#host.networks?.lobbies.recorded(run.facts.network)
      this.#follow(run, folder)
      return started
    })
  }

  async list(): Promise<Handle[]> {
    const handles: Handle[] = []
    for (const summary of await containersOf(this.#host)) {
      const facts = summary.State === 'running' || summary.State === 'paused' ? factsOf(summary.Labels) : null
      if (facts === null) continue
      const known = this.runs.get(facts.lobby_id)
      if (known?.handle != null) handles.push(known.handle)
      // The start of a container that runs already is not over yet.
      if (known !== undefined) continue
      const found = await this.#inspect(facts.lobby_id)
      if (!found?.State.Running) continue
      const run: ActiveRun = { facts, handle: handleOf(found, facts), output: null, program: null, exit: null }
      this.adopt(facts.lobby_id, run)
      const folder = this.folders.of(facts.lobby_id)
      if (!existsSync(folder)) this.folders.make(facts.lobby_id)
      this.#follow(run, folder)
      handles.push(run.handle!)
    }
    return handles
  }

  async exit(handle: Handle): Promise<Exit | null> {
    if (this.#isSeenAlive(handle)) return null
    const ended = readEnded(this.folders.of(handle.lobby_id))
    if (ended !== null) return ended
    const run = this.runs.get(handle.lobby_id)
    if (run === undefined) return this.#recordEnd(handle.lobby_id, handle, null)
    run.exit ??= this.#recordEnd(handle.lobby_id, handle, run).finally(() => {
      // A container that still runs, or a failure: the next call asks again.
      run.exit = null
    })
    return run.exit
  }

  async exitOf(lobby_id: string): Promise<Exit> {
    const known = readEnded(this.folders.of(lobby_id)) ?? (await this.#recordEnd(lobby_id, null, null))
    if (known === null) throw new Error(`Lobby ${lobby_id} runs.`)
    return known
  }

  isSuspended(handle: Handle): boolean {
    const run = this.runs.get(handle.lobby_id)
    if (run === undefined || handle.start_time === '') return false
    // The engine's init is the container's first process, and the program its only child.
    const program = run.program === null ? childrenOf(handle.pid)[0] : undefined
    run.program ??= program === undefined ? null : identityOf(program)
    return run.program !== null && isSuspended(run.program)
  }

  async listening(handle: Handle): Promise<ListeningSocket[] | null> {
    return handle.start_time === '' ? null : listeningSocketsOf(handle.pid)
  }

  async usage(handles: readonly Handle[]): Promise<Map<string, Usage>> {
    const grouped = handles.filter(({ group }) => group !== null && this.#machine.cgroups !== null)
    const others = handles.filter((handle) => !grouped.includes(handle))
    const usage = usageOfRuns(grouped, this.#machine)
    for (const [lobby_id, used] of await usageOfContainers(this.#host.engine, others)) usage.set(lobby_id, used)
    return usage
  }

  protected endRun(handle: Handle, ending: Ending): Promise<void> {
    const stop_signal = this.runs.get(handle.lobby_id)?.facts.stop_signal ?? 'SIGTERM'
    return endContainer(this.#host.engine, handle, { ending, stop_signal }, () => this.#isSeenAlive(handle))
  }

  async write(lobby_id: string, line: string, note: string): Promise<InputResult> {
    const run = this.runs.get(lobby_id)
    if (run?.handle == null || !run.facts.has_input) return 'not_running'
    const result = await this.#inputs.write(containerName(lobby_id), line)
    if (result === 'written') this.folders.noteInput(lobby_id, note)
    return result
  }

  async close(how: { logger: 'end' | 'keep' }): Promise<void> {
    await this.sweepIsOver()
    if (how.logger === 'end') await this.sweepOnce().catch(() => {})
    this.#is_closed = true
    await Promise.all([...this.runs.values()].map(({ output }) => output?.close()))
    this.#inputs.closeAll()
    await this.#closeNetworks(how)
    this.#host.engine.close()
    await this.#closeGroups(how)
  }

  /** The engine removes its own groups in its own time. Those of lobbies that continue stay. */
  async #closeGroups(how: { logger: 'end' | 'keep' }): Promise<void> {
    const { cgroups } = this.#machine
    const wait_ms_max = how.logger === 'end' ? GROUPS_WAIT_MS_MAX : 0
    for (let waited_ms = 0; waited_ms <= wait_ms_max; waited_ms += GROUPS_POLL_MS) {
      if (cgroups === null || cgroups.close()) return
      await sleep(GROUPS_POLL_MS)
      if (how.logger === 'end') for (const group of cgroups.list()) cgroups.remove(group)
    }
  }

  async #closeNetworks(how: { logger: 'end' | 'keep' }): Promise<void> {
    const { networks } = this.#host
    if (networks === null) return
    await networks.container.close({ image: how.logger === 'end' }).catch((error: unknown) => {
      this.#options.log.warn({ err: error }, 'network container could not be removed; the next runner removes it')
    })
    await (how.logger === 'keep' ? networks.lobbies.close() : networks.lobbies.remove())
  }

  #newRun({ lobby_id, image, has_input = false, network = null }: RunSpec): ActiveRun {
    const uid = this.#host.gives_uids && !image ? this.uids.take() : null
    const group = this.#machine.cgroups === null ? null : lobby_id
    const stop_signal = image?.stop_signal ?? 'SIGTERM'
    const facts = { lobby_id, boot_id: this.#machine.boot_id, uid, group, has_input, network, stop_signal }
    return { facts, handle: null, output: null, program: null, exit: null }
  }

  #isSeenAlive(handle: Handle): boolean {
    return handle.start_time !== '' && isAlive(handle, this.#machine.boot_id)
  }

  #inspect(lobby_id: string): Promise<ContainerInspect | null> {
    return this.#host.engine.find<ContainerInspect>(`/containers/${containerName(lobby_id)}/json`)
  }

  #follow(run: ActiveRun, folder: string): void {
    const { engine } = this.#host
    const { now } = this.#options
    const { lobby_id } = run.facts
    markOutputOpen(folder)
    const onFailure = (text: string): void => this.#options.log.warn({ lobby_id, text }, 'output of a lobby was lost')
    const output = new ContainerOutput({ engine, container: containerName(lobby_id), folder, now, onFailure })
    run.output = output
    void output.done.then(() => {
      if (!this.#is_closed) this.#options.onEnd?.(lobby_id)
    })
  }

  /** Null while the container runs. */
  async #recordEnd(lobby_id: string, handle: Handle | null, run: ActiveRun | null): Promise<Exit | null> {
    const folder = this.folders.of(lobby_id)
    const found = await this.#inspect(lobby_id)
    const facts = run?.facts ?? (found === null ? null : factsOf(found.Config.Labels))
    if (found !== null && (found.State.Running || found.State.Status === 'restarting')) return null
    // A request of a runner that was killed must not start it later.
    if (found?.State.Status === 'created') await removeContainer(this.#host.engine, lobby_id)
    if (found !== null && facts !== null) await this.#logIsWhole(lobby_id, run, folder)
    const exit = await exitOfContainer(found, {
      folder,
      handle,
      facts,
      boot_id: this.#machine.boot_id,
      cgroups: this.#machine.cgroups,
      is_podman: this.#host.is_podman,
    })
    if (existsSync(folder)) writeEnded(folder, exit)
    this.releaseNetwork(facts?.network ?? handle?.network ?? null)
    this.#inputs.close(containerName(lobby_id))
    this.forget(lobby_id)
    return exit
  }

  /** A container that ended while no runner followed it is read now. */
  async #logIsWhole(lobby_id: string, run: ActiveRun | null, folder: string): Promise<void> {
    const { engine } = this.#host
    const { now } = this.#options
    if (!existsSync(folder)) return
    const onFailure = (text: string): void => this.#options.log.warn({ lobby_id, text }, 'output of a lobby was lost')
    const output =
      run?.output ?? new ContainerOutput({ engine, container: containerName(lobby_id), folder, now, onFailure })
    await output.whole(LOG_WAIT_MS_MAX)
    if (run === null) await output.close()
  }

  /** Removes what a start has made. A failure is repeated by the next sweep. */
  protected async giveUp(run: ActiveRun): Promise<void> {
    const { lobby_id } = run.facts
    this.forget(lobby_id)
    try {
      await removeContainer(this.#host.engine, lobby_id)
      if (run.facts.group !== null) this.#machine.cgroups?.remove(run.facts.group)
    } catch (error) {
      this.#options.log.warn({ err: error, lobby_id }, 'container of a failed start could not be removed')
    }
  }

  protected async sweepOnce(): Promise<void> {
    const kept = await sweepContainers(this.#host, this.#options.now(), this.stateOf)
    const used = [...kept.values(), ...[...this.runs.values()].map(({ facts }) => facts)]
    await this.#host.networks?.lobbies.sweep(used.flatMap(({ network }) => network ?? []))
    const isUsed = (lobby_id: string): boolean => kept.has(lobby_id) || this.runs.has(lobby_id)
    await trimEnded(this.folders, isUsed, this.ended_logs, this.#options.now())
  }
}
