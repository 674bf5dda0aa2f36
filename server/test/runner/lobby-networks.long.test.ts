// The network of a lobby: what a server reaches from inside, what reaches it, and what is left on the machine afterwards.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Exit, Handle } from '../../src/runner/drivers/driver.ts'
import { lacking } from '../run/optional-programs.ts'
import { until } from '../support/until.ts'
import { makeDataFolder } from './driver-fixture.ts'
import { ECHO, requireBandwidth, requireIsolation, requireNoOpenPort } from './network-programs.ts'
import { makeWorld, NETWORK_NEEDS, namespacesOf, traces, type World } from './network-world.ts'

const SLOW_BYTES_PER_SECOND = 1_000_000
const KILLS = 20
/** Longest life of a runner that is killed, where a machine starts a lobby in half of it. */
const LIFE_MS_MAX = 400
/** Networks that a driver keeps ready after one start, and after many at once. */
const SPARE_COUNT = 1
const SPARE_MAX = 4

function promise(name: string, run: (t: TestContext) => Promise<void>): void {
  test(name, async (t) => {
    const missing = lacking(...NETWORK_NEEDS)
    return missing === null ? run(t) : t.skip(missing)
  })
}

promise('a lobby reaches the platform, DNS and the internet, and no other address', async (t) => {
  const world = await makeWorld(t)
  await requireIsolation(await world.host())
})

promise('a scan of all ports from inside a lobby finds the platform and DNS only', async (t) => {
  const world = await makeWorld(t)
  await requireNoOpenPort(await world.host())
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
  await requireBandwidth(await world.host(), world.machine)
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
  let life_ms = LIFE_MS_MAX
  for (let kill = 0; kill < KILLS; kill++) {
    const host = await world.host({ is_quiet: true })
    if (kill === 0) {
      const began_ms = performance.now()
      await host.call({ start: { program: ECHO } })
      life_ms = Math.max(LIFE_MS_MAX, 2 * (performance.now() - began_ms))
    }
    await host.call({ churn: true })
    await sleep((life_ms * kill) / KILLS)
    host.child.kill('SIGKILL')
    await once(host.child, 'exit')
  }
  const host = await world.host({ is_quiet: true })
  const { lobby_ids } = await host.call<{ lobby_ids: string[] }>({ list: true })
  assert.ok(lobby_ids.length > 1, 'lobbies outlive the runner')
  await host.call({ sweep: true })
  // Those of the living lobbies, and the spare ones.
  await until('the networks of dead lobbies are gone', async () => {
    await host.call({ sweep: true })
    return namespacesOf(world.machine).length <= lobby_ids.length + SPARE_MAX
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

promise(
  'a platform gets the block of a dead one when its range has no other, and never that of a living one',
  async (t) => {
    const world = await makeWorld(t)
    const [first_dir, second_dir] = [makeDataFolder(), makeDataFolder()]
    t.after(() => {
      for (const folder of [first_dir, second_dir]) rmSync(folder, { recursive: true, force: true })
    })
    const before = traces(world)
    const only = { is_quiet: true, range: '198.18.0.0/21' }
    const open = (data_dir: string) => world.host({ ...only, data_dir })
    const requireRefusal = () => assert.rejects(open(second_dir), /every block of MUSTER_LOBBY_NETWORK/)

    const dead = await world.host(only)
    await dead.kill()
    const first = await open(first_dir)
    await requireRefusal()
    const { lobby_id } = await first.call<Handle>({ start: { program: ECHO } })
    await first.kill()
    await requireRefusal()
    const again = await open(first_dir)
    assert.deepEqual(await again.call({ list: true }), { lobby_ids: [lobby_id] })
    await again.call({ stop: lobby_id })
    await again.call({ exit: lobby_id })
    await again.kill()
    // Each removes the block of the one before, then its own traces.
    for (const data_dir of [second_dir, first_dir, world.data_dir]) {
      const host = await open(data_dir)
      await host.call({ close: 'end' })
    }
    assert.deepEqual(traces(world), before)
  },
)

function inMachine({ machine }: World, command: string[]): string {
  return execFileSync('nsenter', [`--net=/run/netns/${machine}`, ...command], { encoding: 'utf8' })
}

/** The order of elements in a set is random. */
function sorted(text: string): string[] {
  return text.split(/[\s,{}]+/).sort()
}
