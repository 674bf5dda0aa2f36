// Which channels the start, the readiness and the end of a lobby notify.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deleteMatchmakerLobby, findLobby } from '@musterhost/contract'
import { createListener, type Listener } from '../../src/database/listen.ts'
import { listenForNodes } from '../../src/runner/node-channels.ts'
import { CHANNELS } from '../../src/wire/channels.ts'
import { silent } from '../database/harness.ts'
import { createDatabase } from '../support/database.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { addNode } from './nodes.ts'

const NODES = ['one', 'two']
const CORES = 64
const MODE = { game_modes: { default: { max_players: 1, idle_grace_ms: 600_000 } } }
const LIMITS = { max_players_per_client: 1_000, lobby_count_max: 1_000 }

test('a lobby wakes the runner of its node alone: when it starts, when it is ready and when it stops', async (t) => {
  const database_url = await createDatabase(t)
  const platform = await startPlatform(t, { database_url })
  const listener = createListener({ url: database_url, log: silent })
  t.after(() => listener.close())
  const game = await platform.game({ matchmaker: MODE, limits: LIMITS })
  platform.playServers(NODES)
  for (const node_id of NODES) await addNode(platform, node_id, CORES)
  // Until the matchmaker knows the nodes, lobbies get none, and any runner would take them.
  await until('lobbies to be on nodes', async () => (await find(platform, game)).node_id !== null)
  const [one, two, neither] = [
    heardBy({ listener }, ['one']),
    heardBy({ listener }, ['two']),
    heardBy({ listener }, []),
  ]
  const port_wakes = wakesOf({ listener }, CHANNELS.lobby_ports)
  // The empty payload of each channel says that listening has begun.
  await until(
    'listening to begin',
    () => one.length === 4 && two.length === 4 && neither.length === 2 && port_wakes.length === 1,
  )
  for (const heard of [one, two, neither]) heard.length = 0

  const { lobby_id, node_id } = await find(platform, game)
  const [its, other] = node_id === 'one' ? [one, two] : [two, one]
  await until('the readiness', () => its.includes(`lobby_ready ${lobby_id}`))
  assert.deepEqual(its.slice(0, 1), ['lobbies '])
  const { game_id } = game
  await platform.client.call(deleteMatchmakerLobby, { params: { game_id, lobby_id } })
  await until('the end', () => its.filter((wake) => wake === 'lobbies ').length === 2)

  // One connection delivers all of them in order, so the others would have arrived before.
  assert.deepEqual([other, neither], [[], []])
  assert.deepEqual(port_wakes, [''], 'a lobby without public ports woke the edges')
})

/** What a runner of these nodes hears, as channel and payload. */
function heardBy({ listener }: { listener: Listener }, node_ids: readonly string[]): string[] {
  const heard: string[] = []
  listenForNodes({ listener }, node_ids, {
    lobbies: (payload) => heard.push(`lobbies ${payload}`),
    lobby_ready: (payload) => heard.push(`lobby_ready ${payload}`),
  })
  return heard
}

function wakesOf({ listener }: { listener: Listener }, channel: string): string[] {
  const payloads: string[] = []
  listener.on(channel, (payload) => payloads.push(payload))
  return payloads
}

/** A seat in a lobby of its own, and the node of the lobby. */
async function find(platform: Platform, game: TestGame): Promise<{ lobby_id: string; node_id: string | null }> {
  const { lobby } = await platform.as(game.public_token).call(findLobby, { body: { game_modes: ['default'] } })
  return { lobby_id: lobby.lobby_id, node_id: await nodeOf(platform, lobby.lobby_id) }
}

async function nodeOf({ ctx }: Platform, lobby_id: string): Promise<string | null> {
  const read = ctx.db.selectFrom('lobbies').where('lobby_id', '=', lobby_id).select('node_id')
  const { node_id } = await until('the lobby to be in its table', () => read.executeTakeFirst())
  return node_id
}
