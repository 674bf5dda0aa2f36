// Programs of lobbies for tests of their networks, and calls of them.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import type { Handle } from '../../src/runner/drivers/driver.ts'
import { type Host, MACHINE_ADDRESSES, PRIVATE_ADDRESSES, PUBLIC_ADDRESS, RESOLVER } from './network-world.ts'

const PORT_LAST = 65_535

/** Listens on 127.0.0.1 for TCP and UDP, and responds with what it receives. */
export const ECHO = `
  import { createServer } from 'node:net'
  import { createSocket } from 'node:dgram'
  createServer((socket) => socket.pipe(socket)).listen(20000, '127.0.0.1', () => console.log('listening'))
  const udp = createSocket('udp4', (message, { port, address }) => udp.send(message, port, address))
  udp.bind(20001, '127.0.0.1')`

/** Connects to each of TARGETS (`tcp ADDRESS PORT` or `udp ADDRESS PORT`) and prints those that respond. */
const PROBE = `
  import { connect } from 'node:net'
  import { createSocket } from 'node:dgram'
  const WAIT_MS = 1500
  const tcp = (host, port) => new Promise((resolve) => {
    const socket = connect({ host, port, timeout: WAIT_MS })
    const end = (is_open) => { socket.destroy(); resolve(is_open) }
    socket.on('connect', () => end(true)).on('error', () => end(false)).on('timeout', () => end(false))
  })
  const udp = (host, port) => new Promise((resolve) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    const end = (is_open) => { socket.close(); resolve(is_open) }
    const timer = setTimeout(() => end(false), WAIT_MS)
    socket.on('error', () => { clearTimeout(timer); end(false) }).on('message', () => { clearTimeout(timer); end(true) })
    socket.send('hello', port, host)
  })
  const targets = JSON.parse(process.env.TARGETS)
  const open = await Promise.all(targets.map(async (target) => {
    const [kind, host, port] = target.replace('SERVICES', process.env.SERVICES).split(' ')
    return (await (kind === 'tcp' ? tcp : udp)(host, Number(port))) ? [target] : []
  }))
  console.log('open ' + JSON.stringify(open.flat()))`

/** Tries every TCP and UDP port of each of ADDRESSES, and prints those that respond. */
const SCAN = `
  import { connect } from 'node:net'
  import { createSocket } from 'node:dgram'
  import { setTimeout as sleep } from 'node:timers/promises'
  const found = []
  const tcp = (host, port) => new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 3_000 })
    const end = () => { socket.destroy(); resolve() }
    socket.on('connect', () => { found.push('tcp ' + host + ' ' + port); end() }).on('error', end).on('timeout', end)
  })
  for (const host of JSON.parse(process.env.ADDRESSES)) {
    let next = 1
    await Promise.all(Array.from({ length: 200 }, async () => { while (next <= ${PORT_LAST}) await tcp(host, next++) }))
    // Datagrams are unconnected, so a refusal ends none of them.
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4').on('error', () => undefined)
    socket.on('message', (_, from) => found.push('udp ' + from.address + ' ' + from.port))
    for (let port = 1; port <= ${PORT_LAST}; port++) {
      socket.send('hello', port, host)
      if (port % 200 === 0) await sleep(1)
    }
    await sleep(500)
    socket.close()
  }
  console.log('found ' + JSON.stringify([...new Set(found)].sort()))`

async function outputOf<T>(host: Host, lobby_id: string, word: string): Promise<T> {
  const { match } = await host.call<{ match: string[] }>({ line: lobby_id, pattern: `^${word} (.*)$` })
  return JSON.parse(match[1]!) as T
}

async function probe(host: Host, targets: string[], options: object = {}): Promise<string[]> {
  const env = { TARGETS: JSON.stringify(targets) }
  const { lobby_id } = await host.call<Handle>({ start: { program: PROBE, env, ...options } })
  return outputOf(host, lobby_id, 'open')
}

const ALLOWED = ['tcp SERVICES 4999', ...(RESOLVER === null ? [] : ['udp SERVICES 53'])]

/** What a lobby must not reach, with a neighbour that runs ECHO. */
function refusedTargets({ address, services }: NonNullable<Handle['network']>): string[] {
  return [
    ...MACHINE_ADDRESSES.flatMap((one) => [`tcp ${one} 22`, `tcp ${one} 5432`, `tcp ${one} 4999`, `udp ${one} 8080`]),
    ...PRIVATE_ADDRESSES.flatMap((one) => [`tcp ${one} 80`, `udp ${one} 53`]),
    ...['22', '5432', '8080'].flatMap((port) => [`tcp ${services} ${port}`, `udp ${services} ${port}`]),
    `tcp ${address} 20000`,
    `udp ${address} 20001`,
    'tcp 127.0.0.1 22',
    'tcp 127.0.0.1 4999',
    'tcp ::1 22',
    'tcp fd12::2 8080',
    'udp fd12::2 8080',
    'tcp 224.0.0.1 80',
    'udp 255.255.255.255 53',
  ]
}
const INTERNET = [`tcp ${PUBLIC_ADDRESS} 80`, `udp ${PUBLIC_ADDRESS} 53`]

/** Requires that a lobby beside a neighbour reaches what it may and nothing else. */
export async function requireIsolation(host: Host): Promise<void> {
  const neighbour = await host.call<Handle>({ start: { program: ECHO } })
  await host.call({ line: neighbour.lobby_id, pattern: '^listening$' })
  const refused = refusedTargets(neighbour.network!)
  assert.deepEqual(await probe(host, [...ALLOWED, ...INTERNET, ...refused]), [...ALLOWED, ...INTERNET])
  assert.deepEqual(await probe(host, [...ALLOWED, ...INTERNET, ...refused], { has_internet: false }), ALLOWED)
  const text = await host.call({ connect: neighbour.network!.address, port: 20_000, send: 'through the pair' })
  assert.deepEqual(text, { text: 'through the pair' })
}

/** Requires that a scan of all ports of all kinds of addresses finds the platform and DNS only. */
export async function requireNoOpenPort(host: Host): Promise<void> {
  const neighbour = await host.call<Handle>({ start: { program: ECHO } })
  const { address, services } = neighbour.network!
  const addresses = [services, MACHINE_ADDRESSES[1], address, 'fd12::2']
  const { lobby_id } = await host.call<Handle>({
    start: { program: SCAN, env: { ADDRESSES: JSON.stringify(addresses) } },
  })
  const found = await outputOf<string[]>(host, lobby_id, 'found')
  assert.deepEqual(found, ALLOWED.map((one) => one.replace('SERVICES', services)).sort())
}

/** Requires the limit on both ends of the pair. */
export async function requireBandwidth(host: Host, machine: string): Promise<void> {
  const { network } = await host.call<Handle>({ start: { program: ECHO, bytes_per_second: 1_000_000 } })
  const { namespace } = network!
  const inside = execFileSync('tc', ['-netns', namespace, 'qdisc', 'show', 'dev', 'eth0'], { encoding: 'utf8' })
  const links = execFileSync('ip', ['-n', machine, '-o', 'link'], { encoding: 'utf8' }).split('\n')
  const name = /^\d+: (\S+)@/.exec(links.find((line) => line.includes(`link-netns ${namespace}`)) ?? '')?.[1]
  const outside = execFileSync('tc', ['-netns', machine, 'qdisc', 'show', 'dev', name!], { encoding: 'utf8' })
  for (const shape of [inside, outside]) assert.match(shape, /tbf .*rate 8Mbit/)
}
