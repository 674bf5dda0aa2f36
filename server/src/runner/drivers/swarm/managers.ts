// Requests to the managers of the Swarm. Any manager takes any request and passes it to the leader, so a manager that is
// away, or that is cut off from the others, is replaced by the next one. Without a majority of managers nothing starts, and
// what runs continues.
import { EngineError } from '../docker/engine.ts'
import type { EngineNode } from './engine-node.ts'

/** How long one manager may take. A manager without a leader responds after some seconds. */
const REQUEST_MS_MAX = 10_000
const HTTP_SERVER_ERROR = 500

type Options = { query?: Record<string, string>; body?: unknown; headers?: Record<string, string> }
type Method = 'GET' | 'POST' | 'DELETE'

/** A machine as the managers see it. */
export type SwarmMachine = { is_ready: boolean; is_active: boolean; labels: Readonly<Record<string, string>> }

type ListedNode = {
  ID: string
  Spec: { Availability: string; Labels?: Record<string, string> | null }
  Status: { State: string }
}

export class Managers {
  readonly #nodes: readonly EngineNode[]
  /** The manager that took the last request. */
  #last: EngineNode | null = null
  /** By swarm id; null while no manager responds. */
  #machines: ReadonlyMap<string, SwarmMachine> | null = null
  #checking: Promise<void> | null = null

  constructor(nodes: readonly EngineNode[]) {
    this.#nodes = nodes
  }

  /** Throws an EngineError for a request that a manager refuses, and an Error when no manager takes requests. */
  async call<T = null>(method: Method, path: string, options: Options = {}): Promise<T> {
    let failure: unknown = new Error('no engine of MUSTER_SWARM_ENGINES that responds is a manager')
    for (const node of this.#inOrder()) {
      try {
        const found = await node.engine.call<T>(method, path, { ...options, ms_max: REQUEST_MS_MAX })
        this.#last = node
        return found
      } catch (error) {
        if (error instanceof EngineError && error.status < HTTP_SERVER_ERROR) throw error
        failure = error
      }
    }
    const reason = failure instanceof Error ? failure.message : String(failure)
    throw new Error(`No manager of the Swarm takes requests: ${reason}`, { cause: failure })
  }

  /** Reads the machines again. Never throws. */
  check(): Promise<void> {
    this.#checking ??= this.call<ListedNode[]>('GET', '/nodes')
      .then(
        (listed) => {
          this.#machines = new Map(listed.map((one) => [one.ID, machineOf(one)]))
        },
        () => {
          this.#machines = null
        },
      )
      .finally(() => {
        this.#checking = null
      })
    return this.#checking
  }

  /** As of the last check. */
  get are_here(): boolean {
    return this.#machines !== null
  }

  machine(swarm_id: string): SwarmMachine | null {
    return this.#machines?.get(swarm_id) ?? null
  }

  #inOrder(): EngineNode[] {
    const able = this.#nodes.filter(({ is_here, facts }) => is_here && facts?.is_manager)
    return [...able.filter((node) => node === this.#last), ...able.filter((node) => node !== this.#last)]
  }
}

function machineOf({ Spec, Status }: ListedNode): SwarmMachine {
  return { is_ready: Status.State === 'ready', is_active: Spec.Availability === 'active', labels: Spec.Labels ?? {} }
}
