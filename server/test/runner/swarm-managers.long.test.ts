// A platform on three engines of a Docker Swarm, each of which is a manager: the loss of one, and of their majority.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ApiError, cancelNodeDrain, deleteMatchmakerLobby, drainNode } from '@musterhost/contract'
import { EngineClient } from '../../src/runner/drivers/docker/engine.ts'
import { lacking } from '../run/optional-programs.ts'
import { until } from '../support/until.ts'
import { needsOf } from './driver-fixture.ts'
import { type Lobby, World } from './swarm-world.ts'

/** Longer than any loss here. */
const GRACE_S = 300
/** Machines notice the loss of the leader by it, and the leader that of a machine after three. */
const HEARTBEAT_S = 10

type Found = { Spec: { Name: string; Labels: object }; ID: string }

/** Makes the service of a lobby once more, as a manager that was suspended in the middle of the request would. */
async function repeat(world: World, [service]: readonly Found[], { lobby_id, node_id }: Lobby): Promise<string> {
  const { engine } = world.machines.find((machine) => machine.node_id === node_id)!
  const client = new EngineClient(engine.socket)
  await client.call('POST', '/services/create', { body: service!.Spec })
  client.close()
  const rejected = await until('the task to be rejected', async () => {
    const printed = await engine.docker([
      'service',
      'ps',
      '--no-trunc',
      '--format',
      '{{.CurrentState}} {{.Error}}',
      `muster-${lobby_id}`,
    ])
    return printed.includes('Rejected') ? printed : null
  })
  await engine.docker(['service', 'rm', `muster-${lobby_id}`])
  return rejected
}

test('of three managers one is suspended and one is killed: lobbies start with the others, none starts twice, and without a majority the error says so', async (t) => {
  const missing = lacking(...needsOf('swarm'))
  if (missing !== null) return t.skip(missing)
  const world = await World.open(t, GRACE_S, ['manager', 'manager'], HEARTBEAT_S)
  const lobbies = await world.findOnAll()
  const answers = await Promise.all(lobbies.map((lobby) => world.ask(lobby)))
  const [first, second, third] = world.machines
  const { client } = world.platform

  // The leader, which the driver asks first. It is suspended in the middle of a start elsewhere.
  await client.call(drainNode, { body: { node_id: first!.node_id } })
  first!.engine.signal('SIGSTOP')
  const next = await until('a lobby to start', () => world.find().catch(() => null))
  assert.ok(await until('its server to respond', () => world.ask(next)))
  assert.notEqual(next.node_id, first!.node_id)
  assert.deepEqual(await Promise.all(lobbies.map((lobby) => world.ask(lobby))), answers, 'no lobby is lost')
  const { engine } = world.machines.find(({ node_id }) => node_id === next.node_id)!
  const service = JSON.parse(await engine.docker(['service', 'inspect', `muster-${next.lobby_id}`])) as Found[]
  const { game_id } = world.game
  await client.call(deleteMatchmakerLobby, { params: { game_id, lobby_id: next.lobby_id } })
  await until('it to leave nothing', async () => !(await engine.docker(['service', 'ls'])).includes(next.lobby_id))
  first!.engine.signal('SIGCONT')
  assert.match(await repeat(world, service, next), /bind source path does not exist/)
  await client.call(cancelNodeDrain, { body: { node_id: first!.node_id } })
  await until('all nodes to be open', () => world.isOpen())

  // Two of three.
  second!.engine.signal('SIGSTOP')
  third!.engine.signal('SIGKILL')
  await until('the first node to say why', async () => (await world.states()).includes('no_manager'))
  const refusal = await until('finds to be refused', () =>
    world.find().then(
      () => null,
      (error: ApiError) => error,
    ),
  )
  assert.deepEqual(
    [refusal.code, refusal.metadata],
    ['MATCHMAKER_REGION_FULL', { region: 'local', reason: 'no_manager', setting: 'MUSTER_SWARM_ENGINES' }],
  )
  assert.match(refusal.message, /no manager of it takes requests/)
  assert.equal(await world.ask(lobbies[1]!), answers[1], 'what runs continues, also where the engine is suspended')
  assert.equal(await world.ask(lobbies[2]!), answers[2], 'or killed')
  second!.engine.signal('SIGCONT')
  await until('a majority to take requests', async () => (await world.states()).includes('open'))
  const last = await until('a lobby to start', () => world.find().catch(() => null))
  assert.ok(await until('its server to respond', () => world.ask(last)))
  assert.equal(await world.ask(lobbies[1]!), answers[1])
  for (const lobby of [...lobbies, next, last]) assert.equal(await world.starts(lobby), 1, lobby.node_id)
})
