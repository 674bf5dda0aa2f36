// One machine of the Swarm: the client of its engine, and what the last check of the engine has shown. A check every second
// lists the lobbies' containers in one request. A machine whose last check failed is away: no request of a lobby waits for it.
import { randomInt } from 'node:crypto'
import { createPorts, PORT_COUNT, type Ports } from '../../ports.ts'
import { type ContainerSummary, factsOf, neverRuns, platformFilter } from '../docker/container.ts'
import { type EngineAddress, EngineClient } from '../docker/engine.ts'
import { ImagePrograms } from '../docker/image-programs.ts'
import { ContainerInputs } from '../docker/input.ts'

/** A machine that does not respond for this long is away. */
const CHECK_MS_MAX = 3_000
/** How long an engine may look for a leader of its managers. */
const FACTS_MS_MAX = 30_000
/** How often the size of a machine and its place in the Swarm are read again. */
const FACTS_EVERY_CHECKS = 5
const MB = 1024 ** 2

/** `swarm_id`: of the machine in the Swarm. `address`: where other machines reach it. */
export type NodeFacts = {
  swarm_id: string
  address: string
  is_manager: boolean
  cpu_cores: number
  memory_mb: number
  /** Whether every lobby gets a uid of its own. */
  gives_uids: boolean
}

type Info = {
  NCPU: number
  MemTotal: number
  SecurityOptions?: string[] | null
  Swarm?: { NodeID?: string; NodeAddr?: string; ControlAvailable?: boolean; LocalNodeState?: string } | null
}

export class EngineNode {
  readonly node_id: string
  readonly engine: EngineClient
  readonly programs: ImagePrograms
  readonly inputs: ContainerInputs
  readonly ports: Ports = createPorts(randomInt(PORT_COUNT), null)
  /** Null: not known yet, or the engine is in no Swarm. */
  facts: NodeFacts | null = null
  /** Whether the last check succeeded. */
  is_here = false
  /** Why the last check failed; null: it did not. */
  failure: string | null = null
  /** When the last check succeeded, by the wall clock. */
  seen_ts = 0
  /** Ends when a check fails after one that succeeded. */
  #presence = new AbortController()
  readonly #platform: string
  readonly #now: () => number
  /** Containers of the platform, as of the last check. */
  #containers: ContainerSummary[] = []
  /** Ids of the lobbies that run, as of the last check and of what was noted since. */
  readonly #running = new Set<string>()
  #checks = 0
  #reading_facts: Promise<void> | null = null
  #checking: Promise<void> | null = null

  constructor(node_id: string, address: EngineAddress, platform: string, now: () => number) {
    this.node_id = node_id
    this.#now = now
    this.#platform = platform
    this.engine = new EngineClient(address)
    this.programs = new ImagePrograms(this.engine)
    this.inputs = new ContainerInputs(this.engine)
  }

  /** Never throws. A call during a check waits for the next one, which begins after the call. */
  async check(): Promise<void> {
    const before = this.#checking
    if (before !== null) await before
    this.#checking ??= this.#checkOnce().finally(() => {
      this.#checking = null
    })
    return this.#checking
  }

  /** As of the last check. */
  containers(): readonly ContainerSummary[] {
    return this.#containers
  }

  containerOf(lobby_id: string): ContainerSummary | null {
    return this.#containers.find(({ Labels }) => !neverRuns(Labels) && factsOf(Labels)?.lobby_id === lobby_id) ?? null
  }

  isRunning(lobby_id: string): boolean {
    return this.#running.has(lobby_id)
  }

  /** It has started since the last check. */
  noteRunning(lobby_id: string): void {
    this.#running.add(lobby_id)
  }

  /** Its output has ended: its state is to be asked for. */
  doubt(lobby_id: string): void {
    this.#running.delete(lobby_id)
  }

  /** Ends what waits for this machine when it goes away. */
  get presence(): AbortSignal {
    return this.#presence.signal
  }

  close(): void {
    this.inputs.closeAll()
    this.engine.close()
  }

  /** An engine whose managers have no leader takes long for this, and responds to all else at once. */
  #readFacts(): Promise<void> {
    this.#reading_facts ??= this.engine
      .call<Info>('GET', '/info', { ms_max: FACTS_MS_MAX })
      .then((info) => {
        this.facts = factsOfMachine(info)
      })
      .finally(() => {
        this.#reading_facts = null
      })
    return this.#reading_facts
  }

  async #checkOnce(): Promise<void> {
    try {
      if (this.facts === null) await this.#readFacts()
      else if (!this.is_here || ++this.#checks % FACTS_EVERY_CHECKS === 0) void this.#readFacts().catch(() => undefined)
      this.#containers = await this.engine.call<ContainerSummary[]>('GET', '/containers/json', {
        query: { all: '1', ...platformFilter(this.#platform) },
        ms_max: CHECK_MS_MAX,
      })
      this.#running.clear()
      for (const { State, Labels } of this.#containers) {
        const facts = State === 'running' || State === 'paused' ? factsOf(Labels) : null
        if (facts !== null && !neverRuns(Labels)) this.#running.add(facts.lobby_id)
      }
      this.seen_ts = this.#now()
      if (this.#presence.signal.aborted) this.#presence = new AbortController()
      this.is_here = this.facts !== null
      this.failure = this.facts === null ? 'the engine is in no Swarm' : null
    } catch (error) {
      this.is_here = false
      this.failure = error instanceof Error ? error.message : String(error)
      this.#presence.abort(new Error(`the engine of the node ${this.node_id} does not respond`))
    }
  }
}

function factsOfMachine({ NCPU, MemTotal, SecurityOptions, Swarm }: Info): NodeFacts | null {
  const { NodeID: swarm_id = '', NodeAddr: address = '', ControlAvailable: is_manager = false } = Swarm ?? {}
  if (swarm_id === '' || address === '') return null
  // A mapped user namespace has only some of the uids.
  const gives_uids = !(SecurityOptions ?? []).some((option) => /^name=(rootless|userns)/.test(option))
  return { swarm_id, address, is_manager, cpu_cores: NCPU, memory_mb: Math.floor(MemTotal / MB), gives_uids }
}
