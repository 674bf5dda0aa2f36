// Several matchmakers place lobbies on the same nodes at the same moment. No limit of a node or of a region is exceeded.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError, deleteMatchmakerLobby, findLobby } from '@musterhost/contract'
import type { Platform, TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { addNode, evenShares, gameIn, startNodes } from './nodes.ts'

const MODE = { game_modes: { default: { max_players: 1, idle_grace_ms: 600_000 } } }
const LIMITS = { max_players_per_client: 1_000, lobby_count_max: 1_000 }
const NODE = 'one'
const LOBBIES_MAX = 5
/** Of each game: together more than fit. */
const FINDS = 8
const ROUNDS = 3

test('two matchmakers that place lobbies at once fill a node, and never exceed its room', async (t) => {
  const nodes = await startNodes(t, { env: { MUSTER_NODE_GRACE_SECONDS: '600' } })
  const { first } = nodes
  const second = await nodes.join({ env: { MUSTER_NODE_GRACE_SECONDS: '600' } })
  const shares = await evenShares([first, second])
  first.playServers([NODE])
  const options = { matchmaker: MODE, limits: LIMITS }
  const one = await gameIn(first, shares.get(first.ctx.config.node_id)!, options)
  const two = await gameIn(first, shares.get(second.ctx.config.node_id)!, options)
  await addNode(first, NODE, (await coresOfLobby(first, one)) * LOBBIES_MAX)
  for (const game of [one, two]) await until('the owner of the game knows the node', () => isPlaced(first, game))
  for (let round = 0; round < ROUNDS; round++) {
    const outcomes = await Promise.all(
      [one, two].flatMap((game) => Array.from({ length: FINDS }, () => outcomeOf(first, game))),
    )
    const found = outcomes.filter((outcome) => outcome === 'found')
    assert.equal(found.length, LOBBIES_MAX)
    assert.ok(outcomes.every((outcome) => outcome === 'found' || outcome === 'MATCHMAKER_REGION_FULL'))
    assert.deepEqual(await sumsOf(first), [LOBBIES_MAX, LOBBIES_MAX])
    await stopAll(first)
    assert.deepEqual(await sumsOf(first), [0, 0])
  }
})

/** The code of a refusal, or `found`. */
async function outcomeOf(platform: Platform, { public_token }: TestGame): Promise<string> {
  try {
    await platform.as(public_token).call(findLobby, { body: { game_modes: ['default'] } })
    return 'found'
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return error.code
  }
}

/** What a lobby of the game uses. */
async function coresOfLobby(platform: Platform, game: TestGame): Promise<number> {
  assert.equal(await outcomeOf(platform, game), 'found')
  const row = await platform.ctx.db.selectFrom('lobbies').select('cpu_cores').executeTakeFirstOrThrow()
  await stopAll(platform)
  return row.cpu_cores
}

/** Whether a lobby of the game gets the node. */
async function isPlaced(platform: Platform, game: TestGame): Promise<boolean> {
  assert.equal(await outcomeOf(platform, game), 'found')
  const live = platform.ctx.db.selectFrom('lobbies').where('stop_ts', 'is', null).select('node_id')
  const { node_id } = await until('the lobby to be in its table', () => live.executeTakeFirst())
  await stopAll(platform)
  return node_id === NODE
}

/** Lobbies of the node by the sums, and by the journal as the tables show it. */
async function sumsOf({ ctx }: Platform): Promise<[number, number]> {
  const sum = await ctx.db
    .selectFrom('place_room')
    .where('place', '=', `node ${NODE}`)
    .select('lobby_count')
    .executeTakeFirst()
  const rows = await ctx.db
    .selectFrom('lobbies')
    .where('stop_ts', 'is', null)
    .where('node_id', '=', NODE)
    .select('lobby_id')
    .execute()
  return [Number(sum?.lobby_count ?? 0), rows.length]
}

async function stopAll(platform: Platform): Promise<void> {
  const live = platform.ctx.db.selectFrom('lobbies').where('stop_ts', 'is', null).select(['lobby_id', 'namespace_id'])
  const games = await platform.ctx.db.selectFrom('namespaces').select(['namespace_id', 'game_id']).execute()
  for (const { lobby_id, namespace_id } of await live.execute()) {
    const { game_id } = games.find((game) => game.namespace_id === namespace_id)!
    await platform.client.call(deleteMatchmakerLobby, { params: { game_id, lobby_id } })
  }
  await until('no lobby lives', async () => (await live.execute()).length === 0)
}
