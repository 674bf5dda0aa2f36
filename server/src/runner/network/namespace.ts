// Makes and removes the network namespaces of lobbies: a namespace, a pair of interfaces, and the route between them. IPv6
// is off except on the lobby's own loopback interface (docs/design/decisions/0080-network-per-lobby.md).
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isGone } from '../../node/procfs.ts'
import { type Block, indexIn, lobbyPrefix, type NetworkNames, namesOf, namespacePrefix } from './addresses.ts'
import { lobbyTableText } from './rules.ts'
import { ipBatch, run } from './system-command.ts'

export const NAMESPACES_FOLDER = '/run/netns'
const SYSCTL = '/proc/sys/net'
/** Longest time that a packet waits for its lobby's share. Later packets are dropped. */
const QUEUE_MS_MAX = 100
/** Bytes that a lobby may send at once, at its full rate afterwards. */
const BURST_BYTES_MIN = 256 * 1024
const BURST_SECONDS = 0.02
/** `tc` has no zero rate. */
const RATE_BYTES_MIN = 1_000
/** The largest rate that 'tc' of every release takes. */
const RATE_BYTES_MAX = 12_500_000_000

/**
 * $1: the lobby's address. $2: the machine's address. The rest: the arguments of tc; without them nothing limits the rate. The
 * batch for nft is the standard input. In its own namespace a lobby may listen on ports below 1024 without being root: many
 * images listen on 80.
 */
const PREPARE = `
set -e
echo 1 > ${SYSCTL}/ipv6/conf/default/disable_ipv6
echo 1 > ${SYSCTL}/ipv6/conf/eth0/disable_ipv6
echo 1 > ${SYSCTL}/ipv4/conf/eth0/route_localnet
echo 0 > ${SYSCTL}/ipv4/ip_unprivileged_port_start
ip -batch - <<END
link set lo up
link set eth0 up
addr add $1/32 dev eth0
route add $2 dev eth0 scope link
route add default via $2
END
shift 2
[ $# -eq 0 ] || tc "$@"
exec nft -f -
`

export const namespacePath = (name: string): string => join(NAMESPACES_FOLDER, name)

/** Null when there is no such process. */
export function isInNamespace(pid: number, name: string): boolean | null {
  const stat = (path: string) => statSync(path, { throwIfNoEntry: false })
  const [own, wanted] = [stat(`/proc/${pid}/ns/net`), stat(namespacePath(name))]
  return own === undefined ? null : own.ino === wanted?.ino && own.dev === wanted.dev
}

/** The command that runs another in a namespace. */
export const inNamespace = (name: string): string[] => ['nsenter', `--net=${namespacePath(name)}`, '--']

/** `bytes_per_second`: the rate of each; null: without a limit. */
export async function makeNamespaces(
  block: Block,
  networks: readonly NetworkNames[],
  bytes_per_second: number | null,
): Promise<void> {
  // The machine's end is up before the lobby's, and has no carrier until then.
  await ipBatch(
    networks.flatMap(({ namespace, interface: name, address }) => [
      `netns add ${namespace}`,
      `link add ${name} type veth peer name eth0 netns ${namespace}`,
      `link set ${name} up`,
      `route add ${address}/32 dev ${name} src ${block.edge}`,
    ]),
  )
  for (const { interface: name } of networks) {
    writeSetting(`ipv6/conf/${name}/disable_ipv6`, '1')
    writeSetting(`ipv4/conf/${name}/forwarding`, '1')
    // The platform's listener for lobbies may be on a loopback address.
    writeSetting(`ipv4/conf/${name}/route_localnet`, '1')
    writeSetting(`ipv4/conf/${name}/rp_filter`, '1')
  }
  const shape = bytes_per_second === null ? null : shapeOf(bytes_per_second)
  const limits = shape === null ? [] : networks.map(({ interface: name }) => limitOf(name, shape).join(' '))
  await Promise.all([
    ...networks.map((network) => prepareInside(block, network, shape)),
    limits.length === 0 ? undefined : run(['tc', '-batch', '-'], `${limits.join('\n')}\n`),
  ])
}

/** Removes what exists. Connections end at once. `others`: interfaces removed with them. */
export async function removeNamespaces(
  networks: readonly NetworkNames[],
  others: readonly string[] = [],
): Promise<void> {
  const there = interfaces()
  const names = [...networks.map(({ interface: name }) => name), ...others].filter((name) => there.includes(name))
  const spaces = networks.map(({ namespace }) => namespace).filter((name) => existsSync(namespacePath(name)))
  const lines = [...names.map((name) => `link del ${name}`), ...spaces.map((name) => `netns del ${name}`)]
  // Another line of the batch may have removed an interface with its namespace.
  await ipBatch(lines, { is_forced: true }).catch(() => undefined)
  const left = existing(networks)
  if (left.length > 0) throw new Error(`the networks ${left.join(', ')} could not be removed`)
}

function existing(networks: readonly NetworkNames[]): string[] {
  const names = interfaces()
  return networks.flatMap(({ namespace, interface: name }) => [
    ...(names.includes(name) ? [name] : []),
    ...(existsSync(namespacePath(namespace)) ? [namespace] : []),
  ])
}

/** Every network of the block of which a namespace or an interface exists. */
export function listNetworks(block: Block): NetworkNames[] {
  const indexes = new Set<number>()
  for (const name of namespaces()) addIndex(indexes, indexIn(name, namespacePrefix(block)))
  for (const name of interfaces()) addIndex(indexes, indexIn(name, lobbyPrefix(block)))
  return [...indexes].map((index) => namesOf(block, index))
}

/** Processes in the namespace. */
export async function pidsIn({ namespace }: NetworkNames): Promise<number[]> {
  // A namespace that was only half made has no name.
  const listed = await run(['ip', 'netns', 'pids', namespace]).catch(() => '')
  return listed
    .split('\n')
    .filter((line) => line !== '')
    .map(Number)
}

/** Limits what the lobby sends and receives, each to this many bytes a second. */
export async function limitRate({ interface: name, namespace }: NetworkNames, bytes_per_second: number): Promise<void> {
  const shape = shapeOf(bytes_per_second)
  await Promise.all([run(['tc', ...limitOf(name, shape)]), run(['tc', '-netns', namespace, ...limitOf('eth0', shape)])])
}

function shapeOf(bytes_per_second: number): string[] {
  const rate = Math.round(Math.min(RATE_BYTES_MAX, Math.max(RATE_BYTES_MIN, bytes_per_second)))
  const burst = Math.max(BURST_BYTES_MIN, Math.round(rate * BURST_SECONDS))
  return ['tbf', 'rate', `${rate}bps`, 'burst', `${burst}b`, 'latency', `${QUEUE_MS_MAX}ms`]
}

const limitOf = (name: string, shape: readonly string[]): string[] => [
  ...['qdisc', 'replace', 'dev', name, 'root'],
  ...shape,
]

async function prepareInside(block: Block, network: NetworkNames, shape: readonly string[] | null): Promise<void> {
  const [program = '', ...enter] = inNamespace(network.namespace)
  const limit = shape === null ? [] : limitOf('eth0', shape)
  const script = ['/bin/sh', '-c', PREPARE, 'sh', network.address, block.services, ...limit]
  await run([program, ...enter, ...script], lobbyTableText(block, network))
}

function writeSetting(path: string, value: string): void {
  writeFileSync(join(SYSCTL, path), value)
}

export function namespaces(): string[] {
  try {
    return readdirSync(NAMESPACES_FOLDER)
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}

export function interfaces(): string[] {
  return [...readFileSync('/proc/net/dev', 'latin1').matchAll(/^ *([^\s:]+):/gm)].map(([, name = '']) => name)
}

function addIndex(indexes: Set<number>, index: number | null): void {
  if (index !== null) indexes.add(index)
}
