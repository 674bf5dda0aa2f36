// Machines of a test. Each is a network namespace with an address of its own, and a bridge in the test's own namespace joins
// them (own-network.ts). Between two machines packets may be delayed, lost, or all dropped. PostgreSQL with its standbys runs on
// machines of a cluster (database/standbys.ts). A store of objects is a program like any other: `run`.
//
// Nothing stays behind: a namespace has no name and lives as long as a process that reads the test's pipe, and programs die
// with the test, also when it is killed.
import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { DelayRelay } from './delay-relay.ts'
import { ip } from './own-network.ts'
import { until } from './until.ts'

const BRIDGE = 'cluster'
/** Of the test itself, on the bridge. */
export const OWN_ADDRESS = '10.77.0.1'
const MACHINES_MAX = 100
/** The first port of the relays. */
const RELAY_PORT_MIN = 7_000

export type Machine = {
  name: string
  address: string
  /** A command behind these words runs on the machine. */
  enter: readonly string[]
}

type Holder = { machine: Machine; process: ChildProcess }

export class Cluster {
  readonly #holders = new Map<string, Holder>()
  readonly #relays: { relay: DelayRelay; from: string; to: string }[] = []
  readonly #programs: ChildProcess[] = []
  /** `FROM TO`: the percentage of packets that are lost. */
  readonly #losses = new Map<string, number>()

  private constructor() {}

  /** For tests in a network of their own. Ends with the test. */
  static async open(t: Pick<TestContext, 'after'>, names: readonly string[]): Promise<Cluster> {
    if (names.length > MACHINES_MAX) throw new Error(`a cluster has at most ${MACHINES_MAX} machines`)
    const cluster = new Cluster()
    t.after(() => cluster.close())
    ip(`link add ${BRIDGE} type bridge`)
    ip(`addr add ${OWN_ADDRESS}/24 dev ${BRIDGE}`)
    ip(`link set ${BRIDGE} up`)
    for (const [index, name] of names.entries()) await cluster.#add(name, `10.77.0.${10 + index}`)
    return cluster
  }

  machine(name: string): Machine {
    const holder = this.#holders.get(name)
    if (holder === undefined) throw new Error(`the cluster has no machine ${name}`)
    return holder.machine
  }

  /** Starts a program on a machine. It ends with the cluster. */
  run(name: string, command: readonly string[], options: SpawnOptions = {}): ChildProcess {
    const [program, ...args] = [...withThisProcess(), ...this.machine(name).enter, ...command]
    const child = spawn(program!, args, options)
    this.#programs.push(child)
    return child
  }

  /**
   * From now on TCP connections of `from` to this port of `to` have a latency of `ms` in each direction, more than they had. They
   * come from the test's address. Returns the relay, whose delay may be changed.
   */
  async delay({ from, to, port, ms }: { from: string; to: string; port: number; ms: number }): Promise<DelayRelay> {
    const target = this.machine(to)
    const relay_port = RELAY_PORT_MIN + this.#relays.length
    const relay = await DelayRelay.open({ host: OWN_ADDRESS, port: relay_port }, { host: target.address, port }, ms)
    this.#relays.push({ relay, from, to })
    this.#filter(
      from,
      `add rule ip faults relayed ip daddr ${target.address} tcp dport ${port} dnat to ${OWN_ADDRESS}:${relay_port}`,
    )
    return relay
  }

  /** Of the packets between the two, in both directions, this share is lost. 0 ends that, 100 is a partition. */
  lose(one: string, other: string, percent: number): void {
    this.loseFrom(one, other, percent)
    this.loseFrom(other, one, percent)
  }

  /** In one direction only. */
  loseFrom(from: string, to: string, percent: number): void {
    this.#losses.set(`${from} ${to}`, percent)
    this.#applyLosses(to)
    for (const link of this.#relays) {
      if ((link.from === from && link.to === to) || (link.from === to && link.to === from))
        link.relay.setCut(percent === 100)
    }
  }

  /** No packet passes between a machine of one side and one of the other. The test itself reaches all of them. */
  partition(one_side: readonly string[], other_side: readonly string[]): void {
    for (const one of one_side) for (const other of other_side) this.lose(one, other, 100)
  }

  /** Nothing is lost any more. */
  heal(): void {
    for (const key of [...this.#losses.keys()]) {
      const [from, to] = key.split(' ') as [string, string]
      this.loseFrom(from, to, 0)
    }
  }

  async close(): Promise<void> {
    const programs = this.#programs.filter((child) => child.exitCode === null && child.signalCode === null)
    await Promise.all(programs.map((child) => endProgram(child)))
    for (const { relay } of this.#relays) await relay.close()
    for (const { process } of this.#holders.values()) process.stdin?.end()
    ip(`link del ${BRIDGE}`)
  }

  async #add(name: string, address: string): Promise<void> {
    // It ends when the pipe does: at the close, and when this process is killed.
    const holder = spawn('unshare', ['--net', 'cat'], { stdio: ['pipe', 'ignore', 'inherit'] })
    const enter = ['nsenter', `--net=/proc/${holder.pid}/ns/net`, '--']
    const machine = { name, address, enter }
    this.#holders.set(name, { machine, process: holder })
    const own = networkOf(process.pid)
    await until(`a namespace for ${name}`, () => networkOf(holder.pid!) !== own)
    ip(`link add to-${name} type veth peer name eth0 netns ${holder.pid}`)
    ip(`link set to-${name} master ${BRIDGE} up`)
    for (const command of [`addr add ${address}/24 dev eth0`, 'link set eth0 up', 'link set lo up']) {
      execFileSync(enter[0]!, [...enter.slice(1), 'ip', ...command.split(' ')], { stdio: 'pipe' })
    }
    this.#filter(
      name,
      `add table ip faults
      add chain ip faults arrivals { type filter hook input priority 0; }
      add chain ip faults relayed { type nat hook output priority -100; }`,
    )
  }

  #applyLosses(to: string): void {
    const rules = [...this.#losses].flatMap(([key, percent]) => {
      const [from, receiver] = key.split(' ') as [string, string]
      if (receiver !== to || percent === 0) return []
      const which = percent === 100 ? '' : `numgen random mod 100 < ${percent} `
      return [`add rule ip faults arrivals ip saddr ${this.machine(from).address} ${which}drop`]
    })
    this.#filter(to, ['flush chain ip faults arrivals', ...rules].join('\n'))
  }

  #filter(name: string, rules: string): void {
    const [program, ...args] = [...this.machine(name).enter, 'nft', '-f', '-']
    execFileSync(program!, args, { input: `${rules}\n`, stdio: ['pipe', 'pipe', 'pipe'] })
  }
}

/** The words before a command that end it with this process, whichever way that ends. */
function withThisProcess(): string[] {
  return ['setpriv', '--pdeathsig', 'KILL']
}

function networkOf(pid: number): string {
  return execFileSync('readlink', [`/proc/${pid}/ns/net`], { encoding: 'utf8' })
}

async function endProgram(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}
