// A second machine joins in two commands, and runs lobbies that players reach through the platform.
import assert from 'node:assert'
import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findLobby, type ResponseOf } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { createMuster } from '../../../cli/test/program.ts'
import { adminFile } from '../../src/supervisor/folders.ts'
import { freeSettings, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { inOwnNetwork } from '../support/own-network.ts'
import { createTestGame, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { ECHO_SERVER } from './echo-server.ts'
import { type StayingFlow, stayOnTcp, stayOnWebSocket } from './flows.ts'
import { cutLink, type Machine, PLATFORM_ADDRESS, type Running, startMachine } from './second-machine.ts'
import { type RawPort, talkTcp, talk as talkTo, talkUdp } from './talk.ts'

const JOINED_MS_MAX = 60_000
const ROUNDS = Number(process.env.ROUNDS ?? 1)
/** Time without the link. */
const CUT_MS = 3_000

type World = { machine: Machine; platform: Client; game: TestGame; settings: Record<string, string>; edge_url: string }
type Client = ReturnType<typeof createClient>
type Seat = ResponseOf<typeof findLobby>

inOwnNetwork(fileURLToPath(import.meta.url), () => {
  test('two commands and a minute after the invitation, players are in a lobby on the second machine', async (t) => {
    const world = await openWorld(t)
    const begin_ms = performance.now()
    const { node } = await joins(t, world)
    const seat = await findSeat(world)
    const first_reply = await talk(seat, 'hello')
    const took_ms = performance.now() - begin_ms
    t.diagnostic(`invited, joined, found and played after ${Math.round(took_ms)} ms`)
    assert.ok(took_ms < JOINED_MS_MAX, `${took_ms} ms`)
    assert.match(first_reply, /^\d+ hello$/)
    assert.match(node.output(), /is the platform of the invitation[\s\S]*this machine is attic in region local/)

    await t.test('raw TCP and UDP reach it too', async () => {
      assert.strictEqual(await talkTcp(rawPort(seat, 'raw'), 'over tcp'), 'over tcp')
      assert.strictEqual(await talkUdp(rawPort(seat, 'voice'), 'over udp'), 'over udp')
    })

    await t.test('players over the link stay connected while the platform restarts', () =>
      staysInRestart(t, world, seat),
    )

    await t.test('the lobby lives on while the link is cut, and is reached again after', async () => {
      const pid = pidOf(first_reply)
      const mend = cutLink()
      await delay(CUT_MS)
      await assert.rejects(talk(seat, 'nobody hears this'))
      mend()
      assert.strictEqual(pidOf(await untilTalks(seat, 'back')), pid)
      assert.notStrictEqual(pidOf(await talk(await findSeat(world), 'another player')), 0)
    })

    await t.test('muster start continues the node, and takes over its lobby', async () => {
      const pid = pidOf(await talk(seat, 'before'))
      assert.strictEqual(await node.stop('SIGTERM'), 0, node.output())
      await world.machine.muster(['start'], nodeSettings(t, world))
      assert.strictEqual(pidOf(await untilTalks(seat, 'after')), pid)
    })

    await t.test('an edge that was replaced ends after its last player', async () => {
      await until('the former edges have ended', () => retiring(world).length === 0)
    })
  })
})

/** Processes that have been replaced, and have not ended. */
function retiring({ settings }: World): { role: string }[] {
  return JSON.parse(readFileSync(join(settings.MUSTER_DATA!, 'lock-holder.json'), 'utf8')).retiring
}

/** ROUNDS restarts one after the other: players of each round go through another edge, and all stay. */
async function staysInRestart(t: TestContext, world: World, seat: Seat): Promise<void> {
  const muster = createMuster(t, world.settings)
  const flows: StayingFlow[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const [web, tcp] = await Promise.all([
      stayOnWebSocket(t, (await findSeat(world)).ports.game!.url),
      stayOnTcp(t, rawPort(seat, 'raw')),
    ])
    flows.push(web, tcp)
    for (const flow of flows) await flow.requireAlive()
    const { code, stderr } = await muster.run(['restart'])
    assert.strictEqual(code, 0, stderr)
    for (const flow of flows) await flow.requireAlive()
    // New players use the next link.
    assert.match(await talk(await findSeat(world), 'after the restart'), /after the restart/)
    assert.strictEqual(await talkTcp(rawPort(seat, 'raw'), 'after the restart'), 'after the restart')
    assert.strictEqual(await talkUdp(rawPort(seat, 'voice'), 'after the restart'), 'after the restart')
    assert.strictEqual(
      retiring(world).filter(({ role }) => role === 'edge').length,
      round + 1,
      'each edge keeps its players',
    )
  }
  const counts = await Promise.all(flows.map((flow) => flow.finish()))
  t.diagnostic(`${counts.reduce((sum, count) => sum + count)} messages of ${flows.length} flows in ${ROUNDS} restarts`)
}

/** A platform without a runner of its own, with a game. */
async function openWorld(t: TestContext): Promise<World> {
  const machine = await startMachine(t)
  const folder = temporaryFolder(t)
  const settings = {
    ...(await freeSettings(folder)),
    MUSTER_ROLES: 'api,matchmaker,edge',
    MUSTER_EDGE_HOST: 'all',
  }
  await placeCluster(folder)
  const started = startMuster(settings)
  await started.ready
  const edge_url = `http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`
  const token = readFileSync(adminFile(folder), 'utf8').trim()
  const as = (bearer: string): Client => createClient({ url: edge_url, token: bearer })
  const platform = as(token)
  const game = await createTestGame(
    { client: platform, api_url: `http://127.0.0.1:${settings.MUSTER_API_PORT}`, as },
    {
      files: { 'server.mjs': ECHO_SERVER },
      docker: { ports: { game: { protocol: 'http' }, raw: { protocol: 'tcp' }, voice: { protocol: 'udp' } } },
    },
  )
  return { machine, platform, game, settings, edge_url }
}

const node_folders = new WeakMap<World, string>()

function nodeSettings(t: TestContext, world: World): Record<string, string> {
  const folder = node_folders.get(world) ?? temporaryFolder(t)
  node_folders.set(world, folder)
  // Lobbies run as other users, who must find their builds.
  chmodSync(folder, 0o711)
  return { MUSTER_DATA: folder, MUSTER_METRICS_PORT: '0' }
}

/** The two commands. In development the platform is called localhost, which is another machine there. */
async function joins(t: TestContext, world: World): Promise<{ node: Running }> {
  const muster = createMuster(t, world.settings)
  const { stdout } = await muster.run(['nodes', 'invite', '--name', 'attic'])
  const [, url = '', invitation = ''] = /^npm run muster -- join (\S+) (\S+)$/m.exec(stdout) ?? []
  const reached = url.replace('localhost', PLATFORM_ADDRESS)
  return { node: await world.machine.muster(['join', reached, invitation], nodeSettings(t, world)) }
}

async function findSeat({ game }: World): Promise<Seat> {
  return game.player.call(findLobby, { body: { game_modes: ['default'] } })
}

/** Through the edge. */
function talk(seat: Seat, text: string): Promise<string> {
  return talkTo(seat.ports.game!.url, text)
}

async function untilTalks(seat: Seat, text: string): Promise<string> {
  const end_ms = performance.now() + JOINED_MS_MAX
  for (;;) {
    try {
      return await talk(seat, text)
    } catch (error) {
      if (performance.now() > end_ms) throw error
      await delay(100)
    }
  }
}

function pidOf(reply: string): number {
  return Number(reply.split(' ')[0])
}

function rawPort(seat: Seat, name: string): RawPort {
  const { hostname, port } = seat.ports[name]!
  return { hostname, port: port! }
}
