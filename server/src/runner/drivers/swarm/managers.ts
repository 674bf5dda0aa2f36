// Requests to the managers of the Swarm. Any manager takes any request and passes it to the leader, so a manager that is
// away, or that is cut off from the others, is replaced by the next one. After the loss of the leader the others elect one
// within half a minute, and requests wait for it. Without a majority of managers nothing starts, and what runs continues.
import { EngineError } from '../docker/engine.ts'
import type { EngineNode } from './engine-node.ts'

/** How long one manager may take. One that waits for a leader takes longer, and another one may know it earlier. */
const REQUEST_MS_MAX = 5_000
const CHECK_MS_MAX = 3_000
const HTTP_SERVER_ERROR = 500
/** How long managers may elect a leader: raft of the Swarm waits for 10 to 20 s of silence. */
export const ELECTION_MS_MAX = 30_000

type Options = { query?: Record<string, string>; body?: unknown; headers?: Record<string, string>; ms_max?: number }
type Method = 'GET' | 'POST' | 'DELETE'

/** A machine as the managers see it. */
export type SwarmMachine = {
  is_ready: boolean
  is_active: boolean
  is_manager: boolean
  labels: Readonly<Record<string, string>>
}

type ListedNode = {
  ID: string
  Spec: { Availability: string; Labels?: Record<string, string> | null }
  Status: { State: string }
  ManagerStatus?: object | null
}

/** No manager takes requests: each is away, or the managers have no majority. */
export class NoManagerError extends Error {}

export class Managers {
  readonly #nodes: readonly EngineNode[]
  /** The manager that took the last request. */
  #last: EngineNode | null = null
  /** By swarm id, as of the last check that succeeded. */
  #machines: ReadonlyMap<string, SwarmMachine> = new Map()
  /** When the last check succeeded, by performance.now(); null: never. */
  #seen_ms: number | null = null
  /** Why the last check failed; null: it did not. */
  #failure: string | null = 'no manager has been asked yet'
  #checking: Promise<void> | null = null

  constructor(nodes: readonly EngineNode[]) {
    this.#nodes = nodes
  }

  /** Throws an EngineError for a request that a manager refuses, and a NoManagerError when none takes requests. */
  async call<T = null>(method: Method, path: string, options: Options = {}): Promise<T> {
    let failure: unknown = new Error('no engine of MUSTER_SWARM_ENGINES that responds is a manager')
    for (const node of this.#inOrder()) {
      try {
        const limits = { ms_max: REQUEST_MS_MAX, signal: node.presence }
        const found = await node.engine.call<T>(method, path, { ...limits, ...options })
        this.#last = node
        return found
      } catch (error) {
        if (error instanceof EngineError && error.status < HTTP_SERVER_ERROR) throw error
        failure = node.presence.aborted ? node.presence.reason : error
      }
    }
    const reason = this.#lackOfMajority() ?? (failure instanceof Error ? failure.message : String(failure))
    throw new NoManagerError(`No manager of the Swarm takes requests: ${reason}`, { cause: failure })
  }

  /** Reads the machines again. Never throws. */
  check(): Promise<void> {
    this.#checking ??= this.call<ListedNode[]>('GET', '/nodes', { ms_max: CHECK_MS_MAX })
      .then(
        (listed) => {
          this.#machines = new Map(listed.map((one) => [one.ID, machineOf(one)]))
          this.#seen_ms = performance.now()
          this.#failure = null
        },
        (error: unknown) => {
          this.#failure = error instanceof Error ? error.message : String(error)
        },
      )
      .finally(() => {
        this.#checking = null
      })
    return this.#checking
  }

  /** Whether the last check succeeded. */
  get are_here(): boolean {
    return this.#failure === null
  }

  /** Why no lobby can start; null: a manager takes requests, or the managers may still elect a leader. */
  get failure(): string | null {
    const is_electing =
      this.#seen_ms !== null &&
      performance.now() - this.#seen_ms < ELECTION_MS_MAX &&
      this.#lackOfMajority() === null &&
      this.#inOrder().length > 0
    return is_electing ? null : this.#failure
  }

  /** As of the last check that succeeded. */
  machine(swarm_id: string): SwarmMachine | null {
    return this.#machines.get(swarm_id) ?? null
  }

  /** As of the last check that succeeded. */
  managerCount(): number {
    return [...this.#machines.values()].filter(({ is_manager }) => is_manager).length
  }

  /** Null: a majority may respond. Managers that MUSTER_SWARM_ENGINES does not name are taken to. */
  #lackOfMajority(): string | null {
    const managers = [...this.#machines].flatMap(([id, { is_manager }]) => (is_manager ? id : []))
    const away = managers.filter((id) => this.#nodes.some((node) => node.facts?.swarm_id === id && !node.is_here))
    const needed = Math.floor(managers.length / 2) + 1
    const left = managers.length - away.length
    if (managers.length === 0 || left >= needed) return null
    return `${left} of ${managers.length} managers respond, and ${needed} are needed`
  }

  #inOrder(): EngineNode[] {
    const able = this.#nodes.filter(({ is_here, facts }) => is_here && facts?.is_manager)
    return [...able.filter((node) => node === this.#last), ...able.filter((node) => node !== this.#last)]
  }
}

function machineOf({ Spec, Status, ManagerStatus }: ListedNode): SwarmMachine {
  return {
    is_ready: Status.State === 'ready',
    is_active: Spec.Availability === 'active',
    is_manager: ManagerStatus != null,
    labels: Spec.Labels ?? {},
  }
}
