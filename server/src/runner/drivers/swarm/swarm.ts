// The swarm driver: a lobby is a service of a Docker Swarm with one task on one node. A manager starts it; the engine of the
// node has its state, its output, its input and its usage, so the driver talks to both. Each engine of MUSTER_SWARM_ENGINES
// is a node of the platform: the matchmaker places lobbies on it, and ends them when it is silent for too long.
//
// A lobby is: started (folder, volume, service) -> running -> ended (`exit` returns its exit, once and for all) -> swept
// (service, container and volume are removed). While its node is away it is taken to run. A lobby that is ended meanwhile
// is `lost`: its service is removed, so the Swarm ends its container when the node returns, and the sweep does so too.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { InputResult } from '../../../lobby-logs/lobby-logs.ts'
import type { ListeningSocket } from '../../sockets.ts'
import { type ContainerFacts, type ContainerInspect, factsOf, neverRuns } from '../docker/container.ts'
import { endContainer, trimEnded } from '../docker/end-container.ts'
import { exitOfContainer } from '../docker/exit.ts'
import { usageOfContainers } from '../docker/usage.ts'
import {
  type Driver,
  type DriverNodes,
  type Exit,
  type Handle,
  type RunPlace,
  type RunSpec,
  SCRATCH_MOUNT,
  type Started,
  type Usage,
} from '../driver.ts'
import type { Ending } from '../endings.ts'
import { readEnded, writeEnded } from '../lobby-folder.ts'
import { LobbyRecords, type RecordOptions } from '../lobby-records.ts'
import type { EngineNode } from './engine-node.ts'
import { prepareSwarmHost, type SwarmHost, type SwarmHostOptions } from './host.ts'
import type { RegistryImages } from './registry-images.ts'
import { handleOfTask, readRunFile, writeRunFile } from './run-file.ts'
import { findContainer, startTask } from './start-task.ts'
import { SwarmNodes } from './swarm-nodes.ts'
import { removeService, removeTask, sweepSwarm } from './sweep-swarm.ts'
import { TaskOutput } from './task-output.ts'
import { socketsOfTask } from './task-sockets.ts'
import { UsageSamples } from './usage-samples.ts'

/** How long an exit waits for its log: complete a moment after the exit, unless the engine restarts. */
const LOG_WAIT_MS_MAX = 5_000
const NO_CAT =
  'The platform cannot see where the server listens, because the image has no program cat. Let the server call ready, or name a line of its log.'
/** How often an end waits for a node that is away. */
const AWAY_POLL_MS = 250

export type SwarmDriverOptions = SwarmHostOptions & RecordOptions

/** What this process knows of a run. `handle`: null while it starts. */
type ActiveRun = {
  facts: ContainerFacts
  node: EngineNode
  handle: Handle | null
  output: TaskOutput
  exit: Promise<Exit | null> | null
  /** It was ended while its node was away. */
  is_given_up: boolean
  /** The log says so. */
  has_no_cat: boolean
}

/** Throws a StartError where the Swarm cannot be used. */
export async function openSwarmDriver(options: SwarmDriverOptions): Promise<Driver> {
  return new SwarmDriver(options, await prepareSwarmHost(options))
}

class SwarmDriver extends LobbyRecords<ActiveRun> implements Driver {
  readonly name = 'swarm'
  readonly sandbox = 'container'
  readonly has_own_network = false
  readonly nodes: DriverNodes
  readonly images: RegistryImages
  readonly #options: SwarmDriverOptions
  readonly #host: SwarmHost
  readonly #watch: SwarmNodes
  readonly #samples = new UsageSamples()
  #is_closed = false

  constructor(options: SwarmDriverOptions, host: SwarmHost) {
    super(host.lobbies_folder, options, 0o700)
    this.images = host.images
    this.#options = options
    this.#host = host
    this.#watch = new SwarmNodes(host, options, (node, is_back) => this.#followOn(node, is_back))
    this.nodes = this.#watch
  }

  homeOf(): string {
    return SCRATCH_MOUNT
  }

  async takeNetwork(): Promise<null> {
    return null
  }

  releaseNetwork(): void {}

  redirect(): Promise<void> {
    throw new Error('Tasks of a Swarm have no network of this machine.')
  }

  async start(spec: RunSpec): Promise<Started> {
    const { lobby_id } = spec
    const place: RunPlace = spec.place ?? { node_id: this.#watch.choose(), ports: [] }
    const node = this.#watch.node(place.node_id)
    if (!node?.is_here) throw new Error(`The engine of the node ${place.node_id} does not respond.`)
    const folder = this.makeFolder(lobby_id)
    const run = this.#newRun(node, this.#factsFor(node, spec))
    return this.launch(lobby_id, folder, run, async () => {
      const { platform, managers, images } = this.#host
      const found = await startTask({ platform, managers, images }, node, spec, run.facts, place)
      if ('refused' in found) return found
      run.handle = handleOfTask(found, run.facts, node.node_id)
      writeRunFile(folder, { handle: run.handle, facts: run.facts })
      node.noteRunning(lobby_id)
      run.output.follow(found.Id)
      void this.#sampleSome(node)
      return { handle: run.handle }
    })
  }

  async list(): Promise<Handle[]> {
    await Promise.all(this.#host.nodes.map((node) => node.check()))
    for (const node of this.#host.nodes) {
      if (!node.is_here) continue
      for (const { Id, Labels } of node.containers()) {
        const facts = neverRuns(Labels) ? null : factsOf(Labels)
        if (facts !== null && node.isRunning(facts.lobby_id)) await this.#adoptOn(node, facts, Id)
      }
    }
    this.#adoptAway()
    const listed = [...this.runs.values()].filter((run) => run.handle !== null && this.#mayRun(run))
    return listed.map(({ handle }) => handle!)
  }

  async exit(handle: Handle): Promise<Exit | null> {
    const { lobby_id } = handle
    const ended = readEnded(this.folders.of(lobby_id))
    if (ended !== null) return ended
    const run = this.runs.get(lobby_id)
    const node = this.#watch.node(handle.node_id ?? '')
    if (run?.is_given_up || node === null) return this.#record(lobby_id, null, handle, run ?? null)
    if (!node.is_here || node.isRunning(lobby_id)) return null
    if (run === undefined) return this.#recordEnd(node, lobby_id, handle, null)
    run.exit ??= this.#recordEnd(node, lobby_id, handle, run).finally(() => {
      // A container that still runs, or a failure: the next call asks again.
      run.exit = null
    })
    return run.exit
  }

  /** Throws while the lobby may run. */
  async exitOf(lobby_id: string): Promise<Exit> {
    const ended = readEnded(this.folders.of(lobby_id))
    if (ended !== null) return ended
    for (const node of this.#host.nodes) {
      if (!node.is_here || (await findContainer(node, lobby_id)) === null) continue
      const exit = await this.#recordEnd(node, lobby_id, null, null)
      if (exit === null) throw new Error(`Lobby ${lobby_id} runs.`)
      return exit
    }
    const known = readRunFile(this.folders.of(lobby_id))
    if (known !== null && this.#watch.node(known.handle.node_id ?? '')?.is_here === false) {
      throw new Error(`The node of lobby ${lobby_id} is away.`)
    }
    // A request of a runner that was killed must not start it later.
    await this.#dropService(lobby_id)
    return this.#record(lobby_id, null, known?.handle ?? null, null)
  }

  isSuspended(): boolean {
    return false
  }

  /** None for a lobby whose node is away. */
  async listening({ lobby_id }: Handle): Promise<ListeningSocket[]> {
    const run = this.runs.get(lobby_id)
    if (run === undefined || run.output.container === null || !run.node.is_here) return []
    const sockets = await socketsOfTask(run.node.engine, run.output.container)
    if (sockets === null && !run.has_no_cat) this.note(lobby_id, NO_CAT)
    run.has_no_cat = sockets === null
    return sockets ?? []
  }

  async usage(handles: readonly Handle[]): Promise<Map<string, Usage>> {
    const usage = new Map<string, Usage>()
    for (const node of this.#host.nodes) {
      const own = handles.filter(({ lobby_id, node_id }) => node_id === node.node_id && node.isRunning(lobby_id))
      if (!node.is_here || own.length === 0) continue
      const containerOf = (lobby_id: string): string => this.runs.get(lobby_id)?.output.container ?? lobby_id
      for (const [lobby_id, used] of await usageOfContainers(node.engine, own, containerOf)) {
        this.#samples.keep(lobby_id, used)
        usage.set(lobby_id, used)
      }
    }
    return usage
  }

  #sampleSome(node: EngineNode): Promise<void> {
    const running = [...this.runs.values()].filter((run) => run.node === node && node.isRunning(run.facts.lobby_id))
    const containers = running.flatMap(({ facts, output: { container } }): [string, string][] =>
      container === null ? [] : [[facts.lobby_id, container]],
    )
    return this.#samples.sampleSome(node.engine, new Map(containers))
  }

  async write(lobby_id: string, line: string, note: string): Promise<InputResult> {
    const run = this.runs.get(lobby_id)
    if (run?.handle == null || !run.facts.has_input || run.output.container === null) return 'not_running'
    if (!run.node.is_here) return 'not_read'
    const result = await run.node.inputs.write(run.output.container, line)
    if (result === 'written') this.folders.noteInput(lobby_id, note)
    return result
  }

  async close(how: { logger: 'end' | 'keep' }): Promise<void> {
    await this.sweepIsOver()
    if (how.logger === 'end') await this.sweepOnce().catch(() => {})
    this.#is_closed = true
    await this.#watch.close()
    for (const { handle, facts } of this.runs.values()) {
      const used = this.#samples.of(facts.lobby_id)
      const folder = this.folders.of(facts.lobby_id)
      if (handle !== null && used !== null && existsSync(folder)) writeRunFile(folder, { handle, facts, used })
    }
    await Promise.all([...this.runs.values()].map(({ output }) => output.close()))
    this.images.close()
    await this.#host.server.close()
    for (const node of this.#host.nodes) node.close()
  }

  async #adoptOn(node: EngineNode, facts: ContainerFacts, container: string): Promise<void> {
    const folder = this.folders.of(facts.lobby_id)
    if (this.runs.has(facts.lobby_id) || readEnded(folder) !== null) return
    const found = await node.engine.find<ContainerInspect>(`/containers/${container}/json`)
    if (!found?.State.Running) return
    if (!existsSync(folder)) this.folders.make(facts.lobby_id)
    const run = this.#newRun(node, facts)
    run.handle = handleOfTask(found, run.facts, node.node_id)
    this.adopt(facts.lobby_id, run)
    writeRunFile(folder, { handle: run.handle, facts })
    run.output.follow(container)
  }

  /** Lobbies of a former runner on nodes that are away: their folders name them. */
  #adoptAway(): void {
    for (const lobby_id of this.folders.unfinished.ids()) {
      const folder = this.folders.of(lobby_id)
      if (this.runs.has(lobby_id) || readEnded(folder) !== null) continue
      const known = readRunFile(folder)
      const node = this.#watch.node(known?.handle.node_id ?? '')
      if (known === null || node === null || node.is_here) continue
      const run = this.#newRun(node, known.facts)
      run.handle = known.handle
      this.adopt(lobby_id, run)
    }
  }

  #mayRun({ node, facts, is_given_up }: ActiveRun): boolean {
    return node.is_here ? node.isRunning(facts.lobby_id) : !is_given_up
  }

  /** A node responds. `is_back`: it was away before, so its connections may be dead. */
  #followOn(node: EngineNode, is_back: boolean): void {
    for (const run of this.runs.values()) {
      if (run.node !== node || run.handle === null || run.is_given_up) continue
      const container = run.output.container ?? node.containerOf(run.facts.lobby_id)?.Id ?? null
      if (container !== null && (is_back || run.output.container === null)) run.output.follow(container)
    }
    void this.#sampleSome(node)
  }

  /** Waits for a node that is away until the grace is over, and then gives the run up. */
  protected async endRun(handle: Handle, ending: Ending): Promise<void> {
    const { lobby_id } = handle
    const run = this.runs.get(lobby_id)
    const stop_signal = run?.facts.stop_signal ?? 'SIGTERM'
    const node = this.#watch.node(handle.node_id ?? '')
    while (node !== null && !node.is_here && performance.now() < ending.deadline_ms && !this.#is_closed) {
      await sleep(AWAY_POLL_MS)
    }
    if (node?.is_here) {
      const container = run?.output.container ?? (await findContainer(node, lobby_id))?.Id
      // What it uses after the stop signal is not counted.
      if (container !== undefined) await this.#samples.sample(node.engine, lobby_id, container).catch(() => undefined)
      if (container !== undefined)
        await endContainer(node.engine, handle, { ending, stop_signal }, () => false, container)
      node.doubt(lobby_id)
      return
    }
    if (run !== undefined) run.is_given_up = true
    await this.#dropService(lobby_id)
  }

  #dropService(lobby_id: string): Promise<void> {
    return removeService(this.#host, lobby_id).catch((error: unknown) => {
      this.#options.log.warn({ err: error, lobby_id }, 'service of a lobby could not be removed; a sweep repeats it')
    })
  }

  #factsFor({ facts }: EngineNode, { lobby_id, image, has_input = false }: RunSpec): ContainerFacts {
    const uid = facts?.gives_uids && !image ? this.uids.take() : null
    const stop_signal = image?.stop_signal ?? 'SIGTERM'
    return { lobby_id, boot_id: '', uid, group: null, has_input, network: null, stop_signal }
  }

  #newRun(node: EngineNode, facts: ContainerFacts): ActiveRun {
    const { lobby_id } = facts
    const output = new TaskOutput(
      { engine: node.engine, folder: this.folders.of(lobby_id), now: this.#options.now },
      {
        onFailure: (text) => this.#options.log.warn({ lobby_id, text }, 'output of a lobby was lost'),
        onEnd: () => {
          node.doubt(lobby_id)
          if (!this.#is_closed) this.#options.onEnd?.(lobby_id)
        },
      },
    )
    return { facts, node, handle: null, output, exit: null, is_given_up: false, has_no_cat: false }
  }

  /** Null while the container runs. */
  async #recordEnd(
    node: EngineNode,
    lobby_id: string,
    handle: Handle | null,
    run: ActiveRun | null,
  ): Promise<Exit | null> {
    const found = await findContainer(node, lobby_id)
    if (found !== null && (found.State.Running || found.State.Status === 'restarting')) return null
    // A request of a runner that was killed must not start it later.
    if (found?.State.Status === 'created') await removeTask(this.#host, node, lobby_id)
    const folder = this.folders.of(lobby_id)
    if (found !== null && existsSync(folder)) {
      const facts = run?.facts ?? factsOf(found.Config.Labels)
      const output = run?.output ?? (facts === null ? null : this.#newRun(node, facts).output)
      if (output?.container === null) output.follow(found.Id)
      await output?.whole(LOG_WAIT_MS_MAX)
      if (run === null) await output?.close()
    }
    return this.#record(lobby_id, found, handle, run)
  }

  /** `found`: null: nothing is known of its container any more. */
  async #record(
    lobby_id: string,
    found: ContainerInspect | null,
    handle: Handle | null,
    run: ActiveRun | null,
  ): Promise<Exit> {
    const folder = this.folders.of(lobby_id)
    const facts = run?.facts ?? (found === null ? null : factsOf(found.Config.Labels))
    const last_usage = this.#samples.of(lobby_id) ?? readRunFile(folder)?.used ?? null
    const ended = { folder, handle, facts, boot_id: '', cgroups: null, is_podman: false, last_usage }
    const exit = await exitOfContainer(found, ended)
    // The last moment at which its node was seen.
    const seen_ts = this.#watch.node(handle?.node_id ?? '')?.seen_ts ?? 0
    if (found === null && exit.ran !== null) exit.ran.end_ts = Math.max(exit.ran.start_ts, seen_ts)
    if (existsSync(folder)) writeEnded(folder, exit)
    if (run?.output.container != null) run.node.inputs.close(run.output.container)
    if (run?.is_given_up) await run.output.close()
    this.forget(lobby_id)
    return exit
  }

  protected override forget(lobby_id: string): void {
    super.forget(lobby_id)
    this.#samples.forget(lobby_id)
  }

  /** Removes what a start has made. A failure is repeated by the next sweep. */
  protected async giveUp({ facts: { lobby_id }, node }: ActiveRun): Promise<void> {
    this.forget(lobby_id)
    await removeTask(this.#host, node, lobby_id).catch((error: unknown) => {
      this.#options.log.warn({ err: error, lobby_id }, 'task of a failed start could not be removed')
    })
  }

  protected async sweepOnce(): Promise<void> {
    // A later sweep does it, when a manager takes requests again.
    if (!this.#host.managers.are_here) return this.ended_logs.sweep()
    const kept = await sweepSwarm(this.#host, this.#options.now(), this.stateOf)
    const isUsed = (lobby_id: string): boolean => kept.has(lobby_id) || this.runs.has(lobby_id)
    await trimEnded(this.folders, isUsed, this.ended_logs, this.#options.now())
  }
}
