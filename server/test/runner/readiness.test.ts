// Servers that never call the platform, and are seen to be ready.
import assert from 'node:assert'
import { writeFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createGameVersion, findLobby, type VersionConfig } from '@musterhost/contract'
import { decodePage } from '../../src/journal/pages.ts'
import { lacking } from '../run/optional-programs.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { openRunner, type RunnerFixture } from './runner-fixture.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>

/** Each line of the file named GATE is a command: `listen`, or what is printed. */
const SERVER = {
  'server.mjs': `
    import { createSocket } from 'node:dgram'
    import { existsSync, readFileSync } from 'node:fs'
    import { createServer } from 'node:net'
    let done = 0
    setInterval(() => {
      const lines = existsSync(process.env.GATE) ? readFileSync(process.env.GATE, 'utf8').split('\\n').slice(0, -1) : []
      for (const line of lines.slice(done)) {
        if (line === 'listen') createServer().listen(Number(process.env.PORT_GAME), '127.0.0.1')
        else if (line === 'bind') createSocket('udp4').bind(Number(process.env.PORT_VOICE), '127.0.0.1')
        else if (line.startsWith('!')) console.error(line.slice(1))
        else console.log(line)
      }
      done = lines.length
    }, 10)
    process.on('SIGTERM', () => process.exit(0))`,
}

/** It listens at PORT, as on other hosting platforms. */
const UNKNOWING = `
  const { createServer } = process.getBuiltinModule('node:http')
  createServer((_, response) => response.end('game')).listen(process.env.PORT, process.env.HOST)
  process.on('SIGTERM', () => process.exit(0))`

/** It listens as LISTEN says, on the numbers of its ports unless LISTEN has others. */
const LISTENER = {
  'server.mjs': `
    import { createSocket } from 'node:dgram'
    import { createServer } from 'node:net'
    for (const { transport, host, ipv6Only = false, port } of JSON.parse(process.env.LISTEN)) {
      if (transport === 'tcp') createServer().listen({ host, ipv6Only, port: port ?? Number(process.env.PORT_GAME) })
      else createSocket({ type: 'udp6', ipv6Only }).bind(port ?? Number(process.env.PORT_VOICE), host)
    }
    process.on('SIGTERM', () => process.exit(0))`,
}
type Listen = { transport: 'tcp' | 'udp'; host: string; ipv6Only?: boolean; port?: number }

type Gate = { env: Record<string, string>; run: (...lines: string[]) => void }

/** The commands of a server, in a file that each of its calls extends. */
async function openGate(t: TestContext): Promise<Gate> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-gate-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  // Lobbies run as other users.
  await chmod(folder, 0o755)
  const GATE = join(folder, 'gate')
  return { env: { GATE }, run: (...lines) => writeFileSync(GATE, `${lines.join('\n')}\n`, { flag: 'a' }) }
}

const isReady = (fixture: RunnerFixture, lobby_id: string) =>
  until('the runner sees that the server is ready', async () => {
    const { rows } = await fixture.ctx.pool.query('select seen_ready_ts from lobby_runs where lobby_id = $1', [
      lobby_id,
    ])
    return rows[0]?.seen_ready_ts ?? null
  })

/** How often the rows say so, over as many checks as a wrong one needs. */
async function staysUnready(fixture: RunnerFixture, lobby_id: string): Promise<void> {
  const lines = (await fixture.log(lobby_id, 'stdout')).length
  for (let round = 0; round < 5; round++) {
    const { rows } = await fixture.ctx.pool.query('select seen_ready_ts from lobby_runs where lobby_id = $1', [
      lobby_id,
    ])
    assert.strictEqual(rows[0].seen_ready_ts, null, `after ${lines} lines`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function startOne(
  t: TestContext,
  docker: Docker,
): Promise<{ fixture: RunnerFixture; lobby_id: string; gate: Gate }> {
  const fixture = await openRunner(t)
  await fixture.start()
  const gate = await openGate(t)
  const version_id = await fixture.version(SERVER, { args: ['node', 'server.mjs'], env: gate.env, ...docker })
  const edge_ports = Object.keys(docker.ports ?? {}).map((name) => ({ name, transport: 'udp', port: 26_001 }))
  const lobby_id = await fixture.lobby(version_id, { edge_ports: JSON.stringify(edge_ports) })
  await fixture.run(lobby_id, 'the run starts', ({ start_ts }) => start_ts !== null)
  return { fixture, lobby_id, gate }
}

test('a server is ready once it listens on all its ports, tcp and udp', async (t) => {
  const ports: Docker['ports'] = { game: { protocol: 'http' }, voice: { protocol: 'udp' } }
  const { fixture, lobby_id, gate } = await startOne(t, { ports, ready: 'listening' })
  await staysUnready(fixture, lobby_id)
  gate.run('listen')
  await staysUnready(fixture, lobby_id)
  gate.run('bind')
  await isReady(fixture, lobby_id)
})

for (const sandbox of ['off', 'available'] as const) {
  test(`a server is ready when the platform connects to its ports, and its log says where it listens (${sandbox})`, async (t) => {
    const fixture = await openRunner(t, sandbox)
    await fixture.start()
    const ports: Docker['ports'] = { game: { protocol: 'https' }, voice: { protocol: 'udp' } }
    const start = async (...sockets: Listen[]): Promise<string> => {
      const docker: Docker = { args: ['node', 'server.mjs'], env: { LISTEN: JSON.stringify(sockets) }, ports }
      const version_id = await fixture.version(LISTENER, { ...docker, ready: 'listening' })
      const edge_ports = JSON.stringify([{ name: 'voice', transport: 'udp', port: 26_001 }])
      return fixture.lobby(version_id, { edge_ports })
    }
    const tcp: Listen = { transport: 'tcp', host: '::' }
    const udp: Listen = { transport: 'udp', host: '::' }
    const lobbies: [RegExp, string][] = [
      [
        /not listen on PORT_GAME \(tcp \d+\)\. .* tcp \[::\]:.* IPv6 only/,
        await start({ ...tcp, ipv6Only: true }, udp),
      ],
      [/on tcp \[::1\]:(\d+)\. Listen on the address in HOST, not on ::1\./, await start({ ...tcp, host: '::1' }, udp)],
      [/PORT_GAME .*\. [Rr]ead PORT\b.* for the port game\./, await start({ ...tcp, port: 30_123 }, udp)],
      [
        /PORT_GAME .*: add `protocol: udp` to it, and read PORT/,
        await start(udp, { transport: 'udp', host: '::ffff:127.0.0.1', port: 30_124 }),
      ],
    ]
    await isReady(fixture, await start(tcp, udp))
    const isUnready = async (line: RegExp, lobby_id: string): Promise<void> => {
      await until(`the log to say ${line}`, async () => line.test((await fixture.log(lobby_id, 'stderr')).join('\n')))
      assert.strictEqual(((await fixture.row(lobby_id)) as unknown as { seen_ready_ts: null }).seen_ready_ts, null)
    }
    for (const [line, lobby_id] of lobbies) await isUnready(line, lobby_id)

    await t.test('a udp socket for IPv6 only, which a program of iproute2 shows', async (sub_test) => {
      const missing = lacking('ip')
      if (missing !== null) return sub_test.skip(missing)
      const lobby_id = await start(tcp, { ...udp, ipv6Only: true })
      await isUnready(/not listen on PORT_VOICE \(udp \d+\)\. .* udp \[::\]:.* IPv6 only/, lobby_id)
    })
  })
}

test('a server is ready after the first line of either stream that matches', async (t) => {
  for (const prefix of ['', '!']) {
    const ready = { log: '^\\[\\w+\\] Done \\(\\d+ ms\\)' }
    const { fixture, lobby_id, gate } = await startOne(t, { ready })
    gate.run(`${prefix}[main] Done (x ms)`, `${prefix}Not [main] Done (5 ms)`)
    await staysUnready(fixture, lobby_id)
    gate.run(...Array.from({ length: 300 }, (_, index) => `${prefix}loading ${index}`), `${prefix}[main] Done (5 ms)!`)
    await isReady(fixture, lobby_id)
  }
})

test('a line that was written while no runner watched counts for the next one', async (t) => {
  const fixture = await openRunner(t)
  const first = await fixture.start()
  const gate = await openGate(t)
  const ready = { log: 'started' }
  const lobby_id = await fixture.lobby(
    await fixture.version(SERVER, { args: ['node', 'server.mjs'], env: gate.env, ready }),
  )
  await fixture.run(lobby_id, 'the run starts', ({ start_ts }) => start_ts !== null)
  await first.stop({ end_lobbies: false })
  gate.run('started')
  await until('the line is kept', async () => (await fixture.log(lobby_id, 'stdout')).includes('started'))
  await fixture.start()
  await isReady(fixture, lobby_id)
})

test('players get seats in a lobby whose server never calls the platform', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  const game = await platform.game({
    files: { 'server.mjs': UNKNOWING },
    docker: { ports: { game: { protocol: 'http' } }, ready: 'listening' },
  })
  const { lobby } = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const { rows } = await platform.ctx.pool.query<{ payload: Buffer }>('select payload from journal')
  const changes = rows.flatMap(({ payload }) => decodePage(payload).entries.flatMap((entry) => entry.changes))
  const ready = changes.filter((change) => change.kind === 'lobby_ready' && change.lobby_id === lobby.lobby_id)
  assert.strictEqual(ready.length, 1, 'it became ready once')
})

test('a version whose server cannot be seen to be ready is refused', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const refusals = async (docker: Docker): Promise<string[]> => {
    const body = { display_name: '2', config: { matchmaker: { docker, game_modes: { default: {} } } } }
    const { metadata } = await platform.client
      .call(createGameVersion, { params: { game_id: game.game_id }, body })
      .then(() => assert.fail('it was accepted'))
      .catch((error) => error)
    return (metadata.errors as { path: string[]; reason: string }[]).map(
      ({ path, reason }) => `${path.join('.')} ${reason}`,
    )
  }
  assert.ok((await refusals({ ready: 'listening' })).some((text) => text.endsWith('docker.ready no_ports')))
  assert.ok((await refusals({ ready: { log: '(a' } })).some((text) => text.endsWith('docker.ready.log invalid')))
})
