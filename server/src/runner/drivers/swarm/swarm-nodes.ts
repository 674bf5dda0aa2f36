// The machines of the Swarm as nodes of the platform. Each is checked every second. While no manager takes requests, or
// while the Swarm starts nothing on a machine, that machine refuses lobbies: its own continue, and no new one is placed.
import { watchEvery } from '../../../database/poller.ts'
import type { Ports } from '../../ports.ts'
import type { DriverNode, DriverNodes, NodeRefusal } from '../driver.ts'
import type { EngineNode } from './engine-node.ts'
import type { SwarmHost, SwarmHostOptions } from './host.ts'
import type { SwarmMachine } from './managers.ts'

const CHECK_EVERY_MS = 1_000
/** A label of a machine in the Swarm: the regions whose lobbies it runs, comma-separated. */
const REGIONS_LABEL = 'muster.regions'

export class SwarmNodes implements DriverNodes {
  readonly ids: readonly string[]
  readonly services: string
  readonly #host: SwarmHost
  readonly #watches: readonly { close: () => Promise<void> }[]
  #next = 0
  /** Why no lobby starts, as logged last. */
  #failure: string | null = null

  /** `onCheck`: a node responds. `is_back`: it was away before. */
  constructor(
    host: SwarmHost,
    { log, swarm }: Pick<SwarmHostOptions, 'log' | 'swarm'>,
    onCheck: (node: EngineNode, is_back: boolean) => void,
  ) {
    this.#host = host
    this.ids = host.nodes.map(({ node_id }) => node_id)
    this.services = swarm.services
    const watch = (check: () => Promise<void>): { close: () => Promise<void> } =>
      watchEvery({ log }, CHECK_EVERY_MS, { run: check, failure: 'the Swarm could not be checked; retrying' })
    this.#watches = [
      watch(() => this.#checkManagers(log)),
      ...host.nodes.map((node) =>
        watch(async () => {
          const was_here = node.is_here
          await node.check()
          if (was_here !== node.is_here) {
            log[node.is_here ? 'info' : 'warn'](
              { node_id: node.node_id, failure: node.failure },
              node.is_here ? 'a node responds again' : 'a node is away',
            )
          }
          if (node.is_here) onCheck(node, !was_here)
        }),
      ),
    ]
  }

  here(): DriverNode[] {
    return this.#host.nodes.flatMap((node) => {
      const { node_id, ports, facts, is_here } = node
      if (!is_here || facts === null) return []
      const machine = this.#host.managers.machine(facts.swarm_id)
      const regions = machine?.labels[REGIONS_LABEL]?.split(',').map((name) => name.trim()) ?? null
      const { address, cpu_cores, memory_mb } = facts
      return { node_id, regions, refusal: this.#refusalOf(machine), cpu_cores, memory_mb, address, ports }
    })
  }

  /** While no manager takes requests, nothing starts on any machine, also after its return. */
  refusalOfAll(): NodeRefusal | null {
    return this.#host.managers.failure === null ? null : 'no_manager'
  }

  portsAt(address: string): Ports | null {
    return this.#host.nodes.find(({ facts }) => facts?.address === address)?.ports ?? null
  }

  node(node_id: string): EngineNode | null {
    return this.#host.nodes.find((node) => node.node_id === node_id) ?? null
  }

  /** A node for a lobby without a place: each in turn. Throws when none responds. */
  choose(): string {
    const here = this.here()
    const chosen = here[this.#next++ % here.length]
    if (chosen === undefined) throw new Error('No node of the Swarm responds.')
    return chosen.node_id
  }

  #refusalOf(machine: SwarmMachine | null): NodeRefusal | null {
    const is_able = machine?.is_ready === true && machine.is_active
    return this.refusalOfAll() ?? (is_able ? null : 'not_available')
  }

  async #checkManagers(log: SwarmHostOptions['log']): Promise<void> {
    const { managers } = this.#host
    const before = this.#failure
    await managers.check()
    this.#failure = managers.failure
    if ((before === null) === (this.#failure === null)) return
    if (this.#failure === null) log.info('a manager of the Swarm takes requests again')
    else log.warn({ failure: this.#failure }, 'no lobby starts in the Swarm; those that run continue')
  }

  async close(): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.close()))
  }
}
