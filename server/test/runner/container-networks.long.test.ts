// The networks of lobbies in containers: they keep the promises of lobby-networks.test.ts, and the engine's part of them
// fails without a trace. The engine runs outside the machine of the test, as it needs no network of its own.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Exit, Handle } from '../../src/runner/drivers/driver.ts'
import { lacking } from '../run/optional-programs.ts'
import { startEngine } from '../support/container-engine.ts'
import { until } from '../support/until.ts'
import { needsOf, sharedEngine } from './driver-fixture.ts'
import { ECHO, requireBandwidth, requireIsolation, requireNoOpenPort } from './network-programs.ts'
import { type Host, makeWorld, NETWORK_NEEDS, namespacesOf, traces, type World } from './network-world.ts'

/** `ROUNDS=20` kills more runners. */
const KILLS = Number(process.env.ROUNDS ?? 4)
/** Longest life of a runner that is killed. */
const LIFE_MS_MAX = 1_600

function promise(name: string, run: (t: TestContext) => Promise<void>): void {
  test(name, async (t) => {
    const missing = lacking(...needsOf('docker'), ...NETWORK_NEEDS)
    return missing === null ? run(t) : t.skip(missing)
  })
}

async function hostOf(world: World, options: object = {}): Promise<Host> {
  return world.host({ engine: (await sharedEngine('docker')).socket, ...options })
}

/** Containers, images and volumes of the engine. */
async function inEngine(): Promise<string[]> {
  const { docker } = await sharedEngine('docker')
  const listed = await Promise.all([
    docker(['ps', '--all', '--format', 'container {{.Names}}']),
    docker(['images', '--format', 'image {{.Repository}}']),
    docker(['volume', 'ls', '--format', 'volume {{.Name}}']),
  ])
  return listed.join('').split('\n').filter(Boolean).sort()
}

promise('a lobby in a container reaches the platform, DNS and the internet, and no other address', async (t) => {
  const world = await makeWorld(t)
  const [before, engine_before] = [traces(world), await inEngine()]
  const host = await hostOf(world)
  await requireIsolation(host)
  await requireBandwidth(host, world.machine)
  await endAll(host)
  await host.call({ close: 'end' })
  await requireTraces(world, before)
  assert.deepEqual(await inEngine(), engine_before)
})

promise('a scan of all ports from inside a container finds the platform and DNS only', async (t) => {
  const world = await makeWorld(t)
  const host = await hostOf(world)
  await requireNoOpenPort(host)
  await endAll(host)
  await host.call({ close: 'end' })
})

promise('a runner that ends leaves the networks of its lobbies, and the next one takes them over', async (t) => {
  const world = await makeWorld(t)
  const before = traces(world)
  const host = await hostOf(world, { is_quiet: true })
  const { lobby_id, network } = await host.call<Handle>({ start: { program: ECHO } })
  await host.call({ close: 'keep' })
  await host.kill()
  assert.deepEqual(namespacesOf(world.machine), [network!.namespace])
  assert.deepEqual(await containersOf(lobby_id), [`container muster-${lobby_id}`])
  const next = await hostOf(world, { is_quiet: true })
  assert.deepEqual(await next.call({ list: true }), { lobby_ids: [lobby_id] })
  await next.call({ line: lobby_id, pattern: '^listening$' })
  await next.call({ sweep: true })
  assert.deepEqual(await next.call({ connect: network!.address, port: 20_000, send: 'still' }), { text: 'still' })
  await endAll(next)
  await next.call({ close: 'keep' })
  await requireTraces(world, before)
})

promise('a runner killed again and again during starts and stops of containers leaves nothing behind', async (t) => {
  const world = await makeWorld(t)
  const [before, engine_before] = [traces(world), await inEngine()]
  let taken_over = 0
  for (let kill = 0; kill < KILLS; kill++) {
    const host = await hostOf(world, { is_quiet: true })
    const { lobby_ids } = await host.call<{ lobby_ids: string[] }>({ list: true })
    taken_over = Math.max(taken_over, lobby_ids.length)
    await host.call({ churn: true })
    await sleep((LIFE_MS_MAX * (kill + 1)) / KILLS)
    host.child.kill('SIGKILL')
    await once(host.child, 'exit')
  }
  const host = await hostOf(world, { is_quiet: true })
  await endAll(host)
  await until('every folder is cleaned', async () => {
    const { unfinished } = await host.call<{ unfinished: string[] }>({ collect: true })
    return unfinished.length === 0
  })
  await host.call({ close: 'end' })
  await requireTraces(world, before)
  assert.deepEqual(await inEngine(), engine_before)
  assert.ok(taken_over > 0, 'lobbies outlive the runner')
  t.diagnostic(`${KILLS} kills, up to ${taken_over} lobbies taken over`)
})

promise('a restart of the engine ends the lobbies with their networks, and the next lobby has one again', async (t) => {
  const world = await makeWorld(t)
  const before = traces(world)
  const host = await hostOf(world)
  const { lobby_id, network } = await host.call<Handle>({ start: { program: ECHO } })
  await host.call({ line: lobby_id, pattern: '^listening$' })
  const engine = await sharedEngine('docker')
  await engine.end()
  await startEngine(t, dirname(engine.socket), { has_network: false })
  const { reason } = await host.call<Exit>({ exit: lobby_id })
  assert.match(reason, /^(signal|exit)$/)
  await until('its network is gone', () => !namespacesOf(world.machine).includes(network!.namespace))
  await requireIsolation(host)
  await endAll(host)
  await host.call({ close: 'end' })
  await requireTraces(world, before)
})

promise('an engine that does not see the networks of the machine is refused where they are required', async (t) => {
  const world = await makeWorld(t)
  const before = traces(world)
  const folder = mkdtempSync(join(tmpdir(), 'muster-engine-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  // As an engine in a container or on another machine.
  const engine = await startEngine(t, folder, { has_network: false, wrapper: ['unshare', '--mount'] })
  await assert.rejects(world.host({ engine: engine.socket }), /network for each lobby is required.*\/run\/netns/)
  await requireTraces(world, before)
  const host = await world.host({ engine: engine.socket, sandbox: 'available' })
  assert.deepEqual(await host.call({ has_own_network: true }), { has_own_network: false })
  await host.call({ close: 'end' })
  assert.equal(await engine.docker(['ps', '--all', '--quiet']), '')
  await requireTraces(world, before)
})

async function containersOf(lobby_id: string): Promise<string[]> {
  return (await inEngine()).filter((line) => line.startsWith('container ') && line.includes(lobby_id))
}

/** The engine removes its control groups in its own time. */
async function requireTraces(world: World, before: ReturnType<typeof traces>): Promise<void> {
  await until('nothing is left', () => isDeepStrictEqual(traces(world), before)).catch(() => undefined)
  assert.deepEqual(traces(world), before)
}

async function endAll(host: Host): Promise<void> {
  const { lobby_ids } = await host.call<{ lobby_ids: string[] }>({ list: true })
  for (const lobby_id of lobby_ids) {
    await host.call({ stop: lobby_id })
    await host.call<Exit>({ exit: lobby_id })
  }
  await host.call({ sweep: true })
}
