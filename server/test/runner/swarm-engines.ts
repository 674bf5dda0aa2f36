// Container engines as a Docker Swarm, for tests. Each is a machine of its own: a network namespace with an address on a
// bridge, to which the test has an address too. All of it ends with the test.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { markLink } from '../leftovers/kernel.ts'
import { markedName, runMark } from '../leftovers/run.ts'
import { type Engine, startEngine } from '../support/container-engine.ts'

/** What joins the first machine, which is a manager. */
export type SwarmRole = 'worker' | 'manager'
/** The longest name of an interface. */
const INTERFACE_LENGTH_MAX = 15
/** Of an engine's API over TCP. */
const API_PORT = 2375

export type SwarmMachine = {
  node_id: string
  address: string
  engine: Engine
  /** Cuts the machine off from all others, or ends that. */
  setConnected(is_connected: boolean): void
  /** Starts the engine again after `engine.end`. */
  restart(): Promise<void>
}

export type SwarmEngines = {
  machines: readonly SwarmMachine[]
  /** The address of the test in the network of the machines. */
  address: string
  /** The value of MUSTER_SWARM_ENGINES. `tcp`: over the network, so that a machine that is cut off does not respond. */
  setting(how: 'unix' | 'tcp'): string
}

/** `heartbeat_s`: a Swarm gives a machine up after three of them. `others`: the machines beside the first. */
export async function startSwarm(
  t: TestContext,
  folder: string,
  heartbeat_s: number,
  others: readonly SwarmRole[],
): Promise<SwarmEngines> {
  const node_ids = ['a', ...others.map((_, index) => String.fromCharCode('b'.charCodeAt(0) + index))].map(
    (name) => `swarm-${name}`,
  )
  const id = process.pid.toString(36)
  const subnet = `10.${200 + (process.pid % 50)}.${(process.pid >> 6) % 250}`
  const bridge = `msw${id}`.slice(0, INTERFACE_LENGTH_MAX)
  const namespaces = node_ids.map((name) => markedName(name))
  t.after(() => {
    for (const namespace of namespaces) ip(['netns', 'del', namespace])
    ip(['link', 'del', bridge])
  })
  ip(['link', 'add', bridge, 'type', 'bridge'])
  markLink(bridge, runMark())
  ip(['addr', 'add', `${subnet}.254/24`, 'dev', bridge])
  ip(['link', 'set', bridge, 'up'])
  const machines = await Promise.all(
    node_ids.map((node_id, index) =>
      startMachine(t, { node_id, namespace: namespaces[index]!, bridge, subnet, index, folder }),
    ),
  )
  const [first] = machines
  await first!.engine.docker(['swarm', 'init', '--advertise-addr', first!.address])
  await first!.engine.docker(['swarm', 'update', '--dispatcher-heartbeat', `${heartbeat_s}s`])
  for (const [index, role] of others.entries()) {
    const token = (await first!.engine.docker(['swarm', 'join-token', '--quiet', role])).trim()
    await machines[index + 1]!.engine.docker(['swarm', 'join', '--token', token, `${first!.address}:2377`])
  }
  return {
    machines,
    address: `${subnet}.254`,
    setting: (how) =>
      machines
        .map(({ node_id, address, engine }) =>
          how === 'unix' ? `${node_id}=unix://${engine.socket}` : `${node_id}=tcp://${address}:${API_PORT}`,
        )
        .join(','),
  }
}

type Plan = { node_id: string; namespace: string; bridge: string; subnet: string; index: number; folder: string }

async function startMachine(t: TestContext, plan: Plan): Promise<SwarmMachine> {
  const { node_id, namespace, bridge, subnet, index } = plan
  const folder = join(plan.folder, node_id)
  const [address, link] = [`${subnet}.${index + 1}`, `${bridge}${index}`]
  ip(['netns', 'add', namespace])
  ip(['link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace])
  ip(['link', 'set', link, 'master', bridge, 'up'])
  ip(['-n', namespace, 'addr', 'add', `${address}/24`, 'dev', 'eth0'])
  for (const one of ['lo', 'eth0']) ip(['-n', namespace, 'link', 'set', one, 'up'])
  ip(['-n', namespace, 'route', 'add', 'default', 'via', `${subnet}.254`])
  // `ip netns exec` would hide the control groups.
  const wrapper = ['nsenter', `--net=/run/netns/${namespace}`]
  const options = {
    has_network: true,
    wrapper,
    settings: { 'no-new-privileges': true, 'insecure-registries': [`${subnet}.0/24`] },
    args: ['--host', `tcp://${address}:${API_PORT}`],
  }
  const machine = {
    node_id,
    address,
    engine: await startEngine(t, folder, options),
    setConnected: (is_connected: boolean) => ip(['link', 'set', link, is_connected ? 'up' : 'down']),
    async restart() {
      machine.engine = await startEngine(t, folder, options)
    },
  }
  return machine
}

function ip(args: readonly string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
