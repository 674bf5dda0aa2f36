// The network of a lobby: what a server reaches from inside, what reaches it, and what is left on the machine afterwards.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Exit, Handle } from '../../src/runner/drivers/driver.ts'
import { until } from '../until.ts'
import {
  type Host,
  MACHINE_ADDRESSES,
  makeWorld,
  missingForNetworks,
  namespacesOf,
  PRIVATE_ADDRESSES,
  PUBLIC_ADDRESS,
  RESOLVER,
  traces,
  type World,
} from './network-world.ts'

const SLOW_BYTES_PER_SECOND = 1_000_000
const KILLS = 20
/** Longest life of a runner that is killed. */
const LIFE_MS_MAX = 400
/** Networks that a driver keeps ready. */
const SPARE_COUNT = 4
const PORT_LAST = 65_535

function promise(name: string, run: (t: TestContext) => Promise<void>): void {
  test(name, async (t) => {
    const missing = missingForNetworks()
    return missing === null ? run(t) : t.skip(missing)
  })
}

/** Listens on 127.0.0.1 for TCP and UDP, and responds with what it receives. */
const ECHO = `
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

promise('a lobby reaches the platform, DNS and the internet, and no other address', async (t) => {
  const world = await makeWorld(t)
  const host = await world.host()
  const neighbour = await host.call<Handle>({ start: { program: ECHO } })
  await host.call({ line: neighbour.lobby_id, pattern: '^listening$' })
  const { address, services } = neighbour.network!
  const refused = [
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
  const internet = [`tcp ${PUBLIC_ADDRESS} 80`, `udp ${PUBLIC_ADDRESS} 53`]
  assert.deepEqual(await probe(host, [...ALLOWED, ...internet, ...refused]), [...ALLOWED, ...internet])
  assert.deepEqual(await probe(host, [...ALLOWED, ...internet, ...refused], { has_internet: false }), ALLOWED)
  const text = await host.call({ connect: address, port: 20_000, send: 'through the pair' })
  assert.deepEqual(text, { text: 'through the pair' })
})

promise('a scan of all ports from inside a lobby finds the platform and DNS only', async (t) => {
  const world = await makeWorld(t)
  const host = await world.host()
  const neighbour = await host.call<Handle>({ start: { program: ECHO } })
  const { address, services } = neighbour.network!
  const addresses = [services, MACHINE_ADDRESSES[1], address, 'fd12::2']
  const { lobby_id } = await host.call<Handle>({
    start: { program: SCAN, env: { ADDRESSES: JSON.stringify(addresses) } },
  })
  const found = await outputOf<string[]>(host, lobby_id, 'found')
  assert.deepEqual(found, ALLOWED.map((one) => one.replace('SERVICES', services)).sort())
})

promise('packets with the address of another lobby are dropped', async (t) => {
  const world = await makeWorld(t)
  const host = await world.host()
  const [first, second] = [
    await host.call<Handle>({ start: { program: ECHO } }),
    await host.call<Handle>({ start: { program: ECHO } }),
  ]
  const { namespace, services } = first.network!
  // Only the administrator of the machine may do this inside a lobby's namespace.
  const inside = (...command: string[]) => execFileSync('ip', ['netns', 'exec', namespace, ...command])
  const connects = (source: string) =>
    `import socket; s = socket.create_connection((${JSON.stringify(services)}, 4999), 2, (${JSON.stringify(source)}, 0)); print(s.recv(20))`
  assert.match(String(inside('python3', '-c', connects(first.network!.address))), /port 4999/)
  inside('ip', 'addr', 'add', `${second.network!.address}/32`, 'dev', 'eth0')
  assert.throws(() => inside('python3', '-c', connects(second.network!.address)), /timed out/)
})

promise('a lobby has the bandwidth of its tier in both directions', async (t) => {
  const world = await makeWorld(t)
  const host = await world.host()
  const { network } = await host.call<Handle>({ start: { program: ECHO, bytes_per_second: 1_000_000 } })
  const { namespace } = network!
  const inside = execFileSync('tc', ['-netns', namespace, 'qdisc', 'show', 'dev', 'eth0'], { encoding: 'utf8' })
  const links = execFileSync('ip', ['-n', world.machine, '-o', 'link'], { encoding: 'utf8' }).split('\n')
  const name = /^\d+: (\S+)@/.exec(links.find((line) => line.includes(`link-netns ${namespace}`)) ?? '')?.[1]
  const outside = execFileSync('tc', ['-netns', world.machine, 'qdisc', 'show', 'dev', name!], { encoding: 'utf8' })
  for (const shape of [inside, outside]) assert.match(shape, /tbf .*rate 8Mbit/)
})

promise('a lobby receives and sends no more than the bandwidth of its tier', async (t) => {
  const world = await makeWorld(t)
  const host = await world.host()
  const { lobby_id, network } = await host.call<Handle>({
    start: { program: ECHO, bytes_per_second: SLOW_BYTES_PER_SECOND },
  })
  await host.call({ line: lobby_id, pattern: '^listening$' })
  const began_ms = performance.now()
  const text = 'x'.repeat(4 * SLOW_BYTES_PER_SECOND)
  const echoed = await host.call<{ text: string }>({ connect: network!.address, port: 20_000, send: text })
  const seconds = (performance.now() - began_ms) / 1_000
  assert.equal(echoed.text.length, text.length)
  // The bucket lets a first part pass at once. A slow machine only makes this slower.
  assert.ok(seconds >= 3, `${text.length} bytes each way in ${seconds} s`)
  t.diagnostic(`${Math.round(text.length / seconds)} bytes a second of ${SLOW_BYTES_PER_SECOND}`)
})

promise('rules that another program removed are restored', async (t) => {
  const world = await makeWorld(t)
  const host = await world.host()
  const isolated = await host.call<Handle>({ start: { program: ECHO, has_internet: false } })
  const text = () => inMachine(world, ['nft', 'list', 'ruleset'])
  await until('the spare networks are ready', () => namespacesOf(world.machine).length === 1 + SPARE_COUNT)
  await until('they are admitted', () => text().match(/"mv\w+\d" \. /g)?.length === 1 + SPARE_COUNT)
  const before = text()
  assert.ok(before.includes(isolated.network!.address))
  inMachine(world, ['nft', 'flush', 'ruleset'])
  await host.call({ sweep: true })
  assert.deepEqual(sorted(text()), sorted(before))
})

promise('no address of the machine appears or disappears, which would end requests of browsers on it', async (t) => {
  const world = await makeWorld(t)
  const monitor = spawn('ip', ['-n', world.machine, '-oneline', 'monitor', 'address'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => monitor.kill())
  let text = ''
  monitor.stdout.on('data', (part) => {
    text += String(part)
  })
  /** A change of ours: what happened before it has been printed when it is. */
  async function mark(address: string): Promise<void> {
    await until('the monitor prints the mark', () => {
      inMachine(world, ['ip', 'addr', 'replace', `${address}/32`, 'dev', 'up0'])
      return text.includes(`${address}/32`)
    })
  }
  await mark('203.0.113.1')
  const host = await world.host()
  const { lobby_id } = await host.call<Handle>({ start: { program: ECHO } })
  await host.call({ stop: lobby_id })
  await host.call({ exit: lobby_id })
  await host.call({ close: 'end' })
  await mark('203.0.113.2')
  // The uplink has addresses of its own, and one of them appears late.
  const others = text.split('\n').filter((line) => line !== '' && !line.includes(': up0 '))
  assert.deepEqual(others, [])
})

promise('nothing is left on the machine after the last lobby', async (t) => {
  const world = await makeWorld(t)
  const before = traces(world)
  const host = await world.host()
  const handle = await host.call<Handle>({ start: { program: ECHO } })
  assert.notDeepEqual(traces(world), before)
  await host.call({ stop: handle.lobby_id })
  const { reason } = await host.call<Exit>({ exit: handle.lobby_id })
  assert.equal(reason, 'signal')
  await host.call({ close: 'end' })
  assert.deepEqual(traces(world), before)
})

promise('a runner that ends leaves the networks of its lobbies, and without lobbies nothing', async (t) => {
  const world = await makeWorld(t)
  const before = traces(world)
  const host = await world.host({ is_quiet: true })
  const { lobby_id, network } = await host.call<Handle>({ start: { program: ECHO } })
  await host.call({ close: 'keep' })
  await host.kill()
  assert.deepEqual(namespacesOf(world.machine), [network!.namespace])
  const next = await world.host({ is_quiet: true })
  assert.deepEqual(await next.call({ list: true }), { lobby_ids: [lobby_id] })
  await next.call({ line: lobby_id, pattern: '^listening$' })
  assert.deepEqual(await next.call({ connect: network!.address, port: 20_000, send: 'still' }), { text: 'still' })
  await next.call({ stop: lobby_id })
  await next.call({ exit: lobby_id })
  await next.call({ close: 'keep' })
  assert.deepEqual(traces(world), before)
})

promise('a runner killed twenty times during starts and stops leaves nothing behind', async (t) => {
  const world = await makeWorld(t)
  const before = traces(world)
  for (let kill = 0; kill < KILLS; kill++) {
    const host = await world.host({ is_quiet: true })
    await host.call({ churn: true })
    await sleep((LIFE_MS_MAX * kill) / KILLS)
    host.child.kill('SIGKILL')
    await once(host.child, 'exit')
  }
  const host = await world.host({ is_quiet: true })
  const { lobby_ids } = await host.call<{ lobby_ids: string[] }>({ list: true })
  assert.ok(lobby_ids.length > 0, 'lobbies outlive the runner')
  await host.call({ sweep: true })
  // Those of the living lobbies, and the spare ones.
  await until('the networks of dead lobbies are gone', async () => {
    await host.call({ sweep: true })
    return namespacesOf(world.machine).length <= lobby_ids.length + SPARE_COUNT
  })
  for (const lobby_id of lobby_ids) {
    await host.call({ stop: lobby_id })
    await host.call({ exit: lobby_id })
  }
  await until('every folder is cleaned', async () => {
    const { unfinished } = await host.call<{ unfinished: string[] }>({ collect: true })
    return unfinished.length === 0
  })
  const lobbies_folder = join(world.data_dir, 'lobbies')
  const left = readdirSync(lobbies_folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    /^[^.].*\/disk/.test(path),
  )
  assert.deepEqual(left, [], 'no disk, and no folder of one')
  await host.call({ close: 'end' })
  assert.deepEqual(traces(world), before)
})

function inMachine({ machine }: World, command: string[]): string {
  return execFileSync('nsenter', [`--net=/run/netns/${machine}`, ...command], { encoding: 'utf8' })
}

/** The order of elements in a set is random. */
function sorted(text: string): string[] {
  return text.split(/[\s,{}]+/).sort()
}
