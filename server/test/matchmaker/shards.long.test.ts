// Several matchmakers share the shards. A call to any of them is answered, and shards move while calls wait.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findLobby, listLobbies, playerConnected, setLobbyReady } from '@musterhost/contract'
import { until } from '../support/until.ts'
import { evenShares, gameIn, sharesOf, startNodes } from './nodes.ts'

const FIND = { body: { game_modes: ['default'] } }
/** The first shards are the ones that a second process gets. */
const MOVED_FIRST = Array.from({ length: 32 }, (_, shard) => shard)

test('two matchmakers have half of the shards each, and a call to either is answered', async (t) => {
  const nodes = await startNodes(t)
  const { first } = nodes
  const second = await nodes.join()
  const shares = await evenShares([first, second])
  for (const { ctx } of [first, second]) {
    const game = await gameIn(first, shares.get(ctx.config.node_id)!)
    first.playServers()
    for (const asked of [first, second]) {
      const player = asked.as(game.public_token)
      const { lobby } = await player.call(findLobby, FIND)
      const server = asked.as(first.lobbyToken({ lobby_id: lobby.lobby_id, namespace_id: game.namespace_id }))
      await server.call(playerConnected, { body: { player_token: lobby.player.token } })
      const listed = await player.call(listLobbies, {})
      assert.deepEqual(
        listed.lobbies.map(({ lobby_id, total_player_count }) => ({ lobby_id, total_player_count })),
        [{ lobby_id: lobby.lobby_id, total_player_count: asked === first ? 1 : 2 }],
      )
    }
  }
})

test('a find that waits for its lobby while the shard moves is answered with the seat that it took', async (t) => {
  const nodes = await startNodes(t)
  const { first } = nodes
  const game = await gameIn(first, MOVED_FIRST)
  const found = game.player.call(findLobby, FIND)
  const row = await until('the lobby is wanted', () =>
    first.ctx.db.selectFrom('lobbies').select(['lobby_id', 'namespace_id']).executeTakeFirst(),
  )
  const second = await nodes.join()
  await evenShares([first, second])
  await first.as(first.lobbyToken(row)).call(setLobbyReady, {})
  const { lobby } = await found
  assert.equal(lobby.lobby_id, row.lobby_id)
  const { lobbies } = await second.as(game.public_token).call(listLobbies, {})
  assert.deepEqual(
    lobbies.map(({ total_player_count }) => total_player_count),
    [1],
  )
})

test('shards move to a node that comes and from a node that stops, and no find fails', async (t) => {
  const nodes = await startNodes(t)
  const { first } = nodes
  first.playServers()
  const game = await gameIn(first, MOVED_FIRST, { limits: { max_players_per_client: 10_000, lobby_count_max: 1_000 } })
  const failures: unknown[] = []
  let [found, is_over] = [0, false]
  const play = async (): Promise<void> => {
    while (!is_over) {
      await game.player.call(findLobby, FIND).then(
        () => found++,
        (error: unknown) => failures.push(error),
      )
    }
  }
  const playing = [play(), play(), play()]
  const second = await nodes.join()
  await evenShares([first, second])
  const moved = found
  await until('finds go on at the second', () => found > moved + 10)
  await second.close()
  await evenShares([first])
  const back = found
  await until('finds go on at the first', () => found > back + 10)
  is_over = true
  await Promise.all(playing)
  assert.deepEqual(failures, [])
  assert.equal((await sharesOf(first)).size, 1)
  t.diagnostic(`${found} finds`)
})

test('a shard that another process had between two heartbeats is read again, and counts as served', async (t) => {
  const { ctx } = (await startNodes(t)).first
  const SHARD = 5
  const rowCount = async (): Promise<number> => {
    const rows = await ctx.db.selectFrom('journal').where('shard', '=', SHARD).select('seq').execute()
    return rows.length
  }
  const before = await rowCount()
  await ctx.db.updateTable('shard_leases').set({ is_served: false }).where('shard', '=', SHARD).execute()
  await until('the shard counts as served', () =>
    ctx.db
      .selectFrom('shard_leases')
      .where('shard', '=', SHARD)
      .where('is_served', '=', true)
      .select('shard')
      .executeTakeFirst(),
  )
  assert.ok((await rowCount()) > before, 'it was taken over')
})
