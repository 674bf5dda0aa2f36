// A platform on two engines of a Docker Swarm: placement, ports, and the loss of an engine, of the network to it and of the
// manager.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lacking } from '../run/optional-programs.ts'
import { until } from '../support/until.ts'
import { needsOf } from './driver-fixture.ts'
import { World } from './swarm-world.ts'

const GRACE_S = 10

test('a machine of a Swarm that is cut off for a while loses no seat; after the grace its lobbies end in one row, and its orphans at its return', async (t) => {
  const missing = lacking(...needsOf('swarm'))
  if (missing !== null) return t.skip(missing)
  const world = await World.open(t, GRACE_S)
  const [first, second] = await world.findOnAll()
  const third = await until('a second lobby on the second machine', async () => {
    const lobby = await world.find()
    return lobby.node_id === second!.node_id ? lobby : null
  })
  const answers = [await world.ask(first!), await world.ask(second!)]
  assert.ok(answers.every((answer) => answer !== null))
  const machine = world.machines[1]!

  machine.setConnected(false)
  await until('its lobbies to take no players', async () => (await world.rowOf(second!.lobby_id)).is_stalled)
  assert.equal((await world.find()).node_id, first!.node_id)
  machine.setConnected(true)
  await until('its lobbies to take players', async () => !(await world.rowOf(second!.lobby_id)).is_stalled)
  const { stop_reason, player_count } = await world.rowOf(second!.lobby_id)
  assert.deepEqual({ stop_reason, player_count }, { stop_reason: null, player_count: 1 })
  assert.deepEqual([await world.ask(first!), await world.ask(second!)], answers)

  machine.setConnected(false)
  await until('its lobbies to end', async () => (await world.rowOf(second!.lobby_id)).stop_reason)
  const lost = [second!.lobby_id, third.lobby_id].sort()
  assert.deepEqual(
    (await world.rowsThatEnd('node_lost')).map((ids) => ids.sort()),
    [lost],
  )
  assert.equal((await world.containersOf(second!)).length, 1, 'the machine itself still runs it')
  machine.setConnected(true)
  await until('its orphans to end', async () => (await world.containersOf(second!)).length === 0)
  await until('the machine to be open', () => world.isOpen())
  assert.deepEqual([await world.ask(first!), await world.ask(second!)], [answers[0], null])
  for (const lobby of [first!, second!, third]) assert.equal(await world.starts(lobby), 1)
})

test('a machine that loses its power takes its own lobbies along, no lobby starts twice, and without a manager none starts', async (t) => {
  const missing = lacking(...needsOf('swarm'))
  if (missing !== null) return t.skip(missing)
  const world = await World.open(t, GRACE_S)
  const [first, second] = await world.findOnAll()
  const answer = await world.ask(second!)
  // The first machine is the only manager.
  const manager = world.machines[0]!
  // Cut off first, so that nothing of its end is seen.
  manager.setConnected(false)
  await manager.engine.end()
  await until('its lobby to end', async () => (await world.rowOf(first!.lobby_id)).stop_reason)
  assert.deepEqual(await world.rowsThatEnd('node_lost'), [[first!.lobby_id]])
  assert.equal(await world.ask(second!), answer, 'the other machine needs no manager for what runs')
  await assert.rejects(world.find(), { code: 'MATCHMAKER_REGION_FULL' })
  manager.setConnected(true)
  await manager.restart()
  await until('the manager to take requests', () => world.isOpen())
  const next = await until('a lobby to start', () => world.find().catch(() => null))
  assert.ok(await until('its server to respond', () => world.ask(next)))
  await until('the lost lobby to leave nothing', async () => (await world.containersOf(first!)).length === 0)
  assert.equal(await world.ask(second!), answer)
  for (const lobby of [first!, second!, next]) assert.equal(await world.starts(lobby), 1)
})
