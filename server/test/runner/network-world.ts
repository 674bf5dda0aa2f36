// A machine for tests of lobby networks: a network namespace in which a driver runs, with an uplink to another one that
// plays the internet. Nothing leaves them. Both are removed with the test.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readResolver } from '../../src/runner/network/resolver.ts'
import { markedName } from '../leftovers/run.ts'
import type { Need } from '../run/optional-programs.ts'
import { killIfThere } from '../supervisor/started.ts'
import { makeDataFolder } from './driver-fixture.ts'

const HOST = fileURLToPath(new URL('./network-host.ts', import.meta.url))
const INTERNET = fileURLToPath(new URL('./network-internet.ts', import.meta.url))
/** A lobby or a spare monitor. */
const LOBBY_GROUP = /^[0-9a-f]{8}-/

/** Addresses of the machine: on its uplink, and a public one. */
export const MACHINE_ADDRESSES = ['192.0.2.2', '5.6.7.8'] as const
/** Addresses in the internet, where all TCP connections to port 80 are accepted. */
export const PUBLIC_ADDRESS = '9.9.9.9'
export const PRIVATE_ADDRESSES = ['10.1.2.3', '172.16.5.5', '192.168.1.1', '169.254.169.254', '100.64.7.7'] as const
export const RESOLVER = readResolver()

/** What networks of lobbies need. */
export const NETWORK_NEEDS = ['root', 'bwrap', 'ip', 'nft'] as const satisfies Need[]

export type World = { machine: string; data_dir: string; host: (options?: object) => Promise<Host> }

/** A process with a driver on the machine. It reads commands and writes results, as lines of JSON. */
export class Host {
  readonly child: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(child: ChildProcess) {
    this.child = child
    this.#lines = createInterface(child.stdout!)[Symbol.asyncIterator]()
  }

  async call<T>(command: object): Promise<T> {
    this.child.stdin!.write(`${JSON.stringify(command)}\n`)
    return this.next()
  }

  async next<T>(): Promise<T> {
    const { value, done } = await this.#lines.next()
    if (done === true) throw new Error('The host ended.')
    const result = JSON.parse(value) as { error?: string } & T
    if (result.error !== undefined) throw new Error(result.error)
    return result
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    this.child.kill('SIGKILL')
    await once(this.child, 'exit')
  }
}

export async function makeWorld(t: TestContext): Promise<World> {
  const [machine, internet] = [markedName('machine'), markedName('internet')]
  const data_dir = makeDataFolder()
  const hosts: Host[] = []
  t.after(async () => {
    for (const host of hosts) await host.kill()
    // Lobbies outlive their runner.
    for (const pid of namespacesOf(machine).flatMap(processesIn)) killIfThere(pid, 'SIGKILL')
    for (const namespace of [...namespacesOf(machine), machine, internet]) ip(['netns', 'del', namespace])
    rmSync(data_dir, { recursive: true, force: true })
  })
  ip(['netns', 'add', machine])
  ip(['netns', 'add', internet])
  ip(['-n', machine, 'link', 'add', 'up0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', internet])
  for (const [namespace, links] of [
    [machine, ['lo', 'up0']],
    [internet, ['lo', 'eth0']],
  ] as const) {
    for (const link of links) ip(['-n', namespace, 'link', 'set', link, 'up'])
  }
  ip(['-n', internet, 'addr', 'add', '192.0.2.1/24', 'dev', 'eth0'])
  ip(['-n', machine, 'addr', 'add', '192.0.2.2/24', 'dev', 'up0'])
  ip(['-n', machine, 'addr', 'add', '5.6.7.8/32', 'dev', 'up0'])
  ip(['-n', machine, '-6', 'addr', 'add', 'fd12::2/64', 'dev', 'up0', 'nodad'])
  ip(['-n', internet, '-6', 'addr', 'add', 'fd12::1/64', 'dev', 'eth0', 'nodad'])
  ip(['-n', machine, 'route', 'add', 'default', 'via', '192.0.2.1'])
  for (const address of [PUBLIC_ADDRESS, ...PRIVATE_ADDRESSES, ...(RESOLVER === null ? [] : [RESOLVER])]) {
    ip(['-n', internet, 'addr', 'add', `${address}/32`, 'dev', 'lo'])
  }
  const server = enter(internet, [process.execPath, INTERNET])
  t.after(() => server.kill('SIGKILL'))
  await once(createInterface(server.stdout!), 'line')
  return {
    machine,
    data_dir,
    async host(options = {}) {
      const host = new Host(enter(machine, [process.execPath, HOST, JSON.stringify({ data_dir, ...options })]))
      hosts.push(host)
      await host.next()
      return host
    },
  }
}

/** What lobbies leave in the kernel and on the disk, in the network of the machine. */
export function traces({ machine, data_dir }: Pick<World, 'machine' | 'data_dir'>): Record<string, string[]> {
  const inside = (command: string[]): string =>
    execFileSync('nsenter', [`--net=/run/netns/${machine}`, ...command], { encoding: 'utf8' })
  const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '')
  const interfaces = [...inside(['cat', '/proc/net/dev']).matchAll(/^ *([^\s:]+):/gm)].map(([, name]) => name!)
  return {
    interfaces: interfaces.sort(),
    routes: lines(inside(['ip', 'route'])).sort(),
    tables: lines(inside(['nft', 'list', 'tables'])).sort(),
    forwarding: [inside(['cat', '/proc/sys/net/ipv4/conf/up0/forwarding']).trim()],
    namespaces: namespacesOf(machine),
    mounts: lines(execFileSync('cat', ['/proc/self/mounts'], { encoding: 'utf8' })).filter((line) =>
      line.includes(data_dir),
    ),
    disks: lines(execFileSync('losetup', ['--all'], { encoding: 'utf8' })).filter((line) => line.includes(data_dir)),
    ...groupsOf(data_dir),
  }
}

/** The control groups of a platform, with those of its lobbies, and the processes in them, with their users. */
function groupsOf(data_dir: string): { groups: string[]; processes: string[] } {
  const name = `muster-${hash('sha256', data_dir).slice(0, 16)}`
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const folders = mounts
    .map((line) => line.split(' '))
    .flatMap(([, folder, type]) => (type?.startsWith('cgroup') ? [join(folder!, name)] : []))
    .filter((folder) => existsSync(folder))
  const groups = folders.flatMap((folder) => [folder, ...namesIn(folder).filter((entry) => LOBBY_GROUP.test(entry))])
  const processes = readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      const file = (path: string): string => readIfThere(`/proc/${pid}/${path}`)
      if (!file('cgroup').includes(name)) return []
      return [`${/^Uid:\t(\d+)/m.exec(file('status'))?.[1]} ${file('cmdline').replaceAll('\0', ' ')}`]
    })
  return { groups: groups.sort(), processes: processes.sort() }
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).sort() : []
}

/** Empty when the process has ended. */
function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** The namespaces of lobbies whose machine is in this one. */
export function namespacesOf(machine: string): string[] {
  const peers = execFileSync('ip', ['-n', machine, '-o', 'link'], { encoding: 'utf8' })
  const names = readdirSync('/run/netns').filter((name) => name.startsWith('muster-'))
  return names.filter((name) => peers.includes(`link-netns ${name}`))
}

function processesIn(namespace: string): number[] {
  const pids = execFileSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' })
  return pids.split('\n').filter(Boolean).map(Number)
}

function ip(args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] })
}

function enter(namespace: string, command: string[]): ChildProcess {
  return spawn('nsenter', [`--net=/run/netns/${namespace}`, '--', ...command], { stdio: ['pipe', 'pipe', 'inherit'] })
}
