import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { lacking } from '../run/optional-programs.ts'
import { until } from '../support/until.ts'
import { BASE_IMAGE } from './base-image.ts'
import { needsOf, sharedEngine, swarmSettings } from './driver-fixture.ts'
import { NETWORK_NEEDS } from './network-world.ts'
import { openRunner } from './runner-fixture.ts'

const SERVER = `
  import { readFileSync } from 'node:fs'
  import { createServer } from 'node:http'
  process.on('SIGTERM', () => process.exit(0))
  const file = readFileSync(process.env.HOME + '/config', 'utf8')
  createServer((_, answer) => answer.end(file)).listen(Number(process.env.PORT), process.env.HOST)`

for (const kind of ['docker', 'swarm'] as const) {
  test(`the runner starts a wanted lobby in a container, takes it over after a restart, and ends it (${kind})`, async (t) => {
    const missing = lacking(...needsOf(kind))
    if (missing !== null) return t.skip(missing)
    await playAndEnd(t, kind)
  })
}

async function playAndEnd(t: TestContext, kind: 'docker' | 'swarm'): Promise<void> {
  const { socket, docker } = await sharedEngine(kind)
  const fixture = await openRunner(t, 'off', {
    ...(kind === 'swarm' ? await swarmSettings() : { MUSTER_DRIVER: kind, MUSTER_DOCKER_SOCKET: socket }),
    MUSTER_DOCKER_BASE_IMAGE: BASE_IMAGE,
  })
  const first = await fixture.start()
  const version_id = await fixture.version(
    { 'server.mjs': SERVER },
    {
      args: ['node', 'server.mjs'],
      ports: { game: { protocol: 'http' } },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of the version config.
      files: { config: 'lobby ${LOBBY_ID}' },
    },
  )
  const lobby_id = await fixture.lobby(version_id)
  const started = await fixture.run(lobby_id, 'the run starts', ({ start_ts }) => start_ts !== null)
  const { hostname = '', port = 0 } = started.ports.game ?? {}
  const ask = () =>
    fetch(`http://${hostname}:${port}/`).then(
      (response) => response.text(),
      () => null,
    )
  assert.equal(await until('the server responds', ask), `lobby ${lobby_id}`)

  await first.stop({ end_lobbies: false })
  assert.equal(await ask(), `lobby ${lobby_id}`)
  await fixture.start()
  await fixture.unwant(lobby_id)
  const ended = await fixture.run(lobby_id, 'the run ends', ({ exit_ts }) => exit_ts !== null)
  assert.deepEqual([ended.exit_reason, ended.exit_code, ended.start_ts], ['stopped', 0, started.start_ts])
  assert.ok(Number(ended.cpu_ms) > 0)
  assert.ok(!(await docker(['ps'])).includes(lobby_id))
}

const ECHO = `
  import { createServer } from 'node:net'
  createServer((socket) => socket.end('from ' + socket.remoteAddress)).listen(7777, '127.0.0.1')`

test('lobbies in containers listen on one number, and each player has an address of its own', async (t) => {
  const missing = lacking(...needsOf('docker'), ...NETWORK_NEEDS)
  if (missing !== null) return t.skip(missing)
  const { socket } = await sharedEngine('docker')
  const fixture = await openRunner(t, 'available', {
    MUSTER_DRIVER: 'docker',
    MUSTER_DOCKER_SOCKET: socket,
    MUSTER_DOCKER_BASE_IMAGE: BASE_IMAGE,
  })
  await fixture.start()
  const version_id = await fixture.version(
    { 'server.mjs': ECHO },
    {
      args: ['node', 'server.mjs'],
      ports: { game: { protocol: 'http', port: 7_777 } },
      seats: 'edge',
      player_addresses: true,
    },
  )
  for (const lobby_id of [await fixture.lobby(version_id), await fixture.lobby(version_id)]) {
    const { ports, handle } = await fixture.run(lobby_id, 'the run starts', ({ start_ts }) => start_ts !== null)
    assert.equal(ports.game!.port, 7_777)
    const [first = ''] = handle.network!.players.split('/')
    const player = first.replace(/\d+$/, '7')
    const from = async (): Promise<string | null> => {
      const connection = connect({ host: ports.game!.hostname, port: 7_777, localAddress: player })
      return text(connection).catch(() => null)
    }
    assert.equal(await until('the server responds', from), `from ${player}`)
  }
})

const AGONES = `
  import { createServer } from 'node:http'
  createServer(async (_, response) => {
    const answer = await fetch('http://127.0.0.1:9358/gameserver')
    response.end(await answer.text())
  }).listen(Number(process.env.PORT), process.env.HOST)`

for (const kind of ['docker', 'podman'] as const) {
  test(`a server in a container finds its protocol on its own loopback interface (${kind})`, async (t) => {
    const missing = lacking(...needsOf(kind), ...NETWORK_NEEDS)
    if (missing !== null) return t.skip(missing)
    const { socket } = await sharedEngine(kind)
    const fixture = await openRunner(t, 'available', {
      MUSTER_DRIVER: 'docker',
      MUSTER_DOCKER_SOCKET: socket,
      MUSTER_DOCKER_BASE_IMAGE: BASE_IMAGE,
    })
    await fixture.start()
    const version_id = await fixture.version(
      { 'server.mjs': AGONES },
      { args: ['node', 'server.mjs'], protocol: 'agones', ports: { game: { protocol: 'http' } } },
    )
    const lobbies = await Promise.all([fixture.lobby(version_id), fixture.lobby(version_id)])
    for (const lobby_id of lobbies) {
      const run = await fixture.run(lobby_id, 'the run starts', ({ start_ts }) => start_ts !== null)
      const { hostname = '', port = 0 } = run.ports.game ?? {}
      const seen = await until('the server responds', () =>
        fetch(`http://${hostname}:${port}/`).then(
          (response) => response.json() as Promise<{ object_meta: { uid: string } }>,
          () => null,
        ),
      )
      assert.equal(seen.object_meta.uid, lobby_id)
    }
  })
}
