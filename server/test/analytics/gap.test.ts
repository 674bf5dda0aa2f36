// A part of the journal goes before analytics have read it: what it said is not counted, and nobody stays for ever who
// left in it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AnalyticsVariant, deleteMatchmakerLobby, getAnalytics } from '@musterhost/contract'
import { shardOf } from '../../src/journal/pages.ts'
import { LONG_MS } from '../http/steps.ts'
import { openDatabase } from '../matchmaker/writers.ts'
import { createDatabase } from '../support/database.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

test('behind a gap of the journal it goes on; who left within it has left, and what began there is not counted', async (t) => {
  const database_url = await createDatabase(t)
  const platform = await startPlatform(t, { database_url })
  const { client } = platform
  const mode = { idle_grace_ms: LONG_MS, max_players: 1 }
  const game_modes = { default: mode, other: mode }
  const game = await platform.game({ matchmaker: { game_modes } })
  const shard = shardOf(game.namespace_id)
  const db = await openDatabase(t, database_url)

  const known = new Set<string>()
  /** Another lobby, with its player. */
  const play = async (game_mode = 'default'): Promise<string> => {
    const seat = game.find({ game_modes: [game_mode] })
    seat.catch(() => {})
    const lobby_id = await until('a lobby of its own', async () => {
      return (await platform.startingLobbies(game)).find((id) => !known.has(id))
    })
    known.add(lobby_id)
    await platform.makeReady(game, lobby_id)
    await seat
    return lobby_id
  }
  const told = async () => {
    const now_ms = platform.ctx.now()
    const variants: AnalyticsVariant[] = ['matchmaker_overview', 'destroyed_lobbies_by_failure', 'lobby_count']
    const { data_sets } = await client.call(getAnalytics, {
      query: {
        query_start: new Date(now_ms - 30 * 60_000).toISOString(),
        query_end: new Date(now_ms + 60_000).toISOString(),
        game_ids: [game.game_id],
        namespace_ids: [game.namespace_id],
        variants,
      },
    })
    const { destroyed_lobby_count, failed } = data_sets[1]!.destroyed_lobbies_by_failure!
    return {
      ...data_sets[0]!.matchmaker_overview!,
      last: data_sets[2]!.lobby_count!.lobby_count.at(-1),
      stopped: destroyed_lobby_count.reduce((sum, count) => sum + count, 0),
      failed: destroyed_lobby_count.filter((count, index) => failed[index] && count > 0).length,
    }
  }
  const isFolded = () =>
    until('all of it is folded', async () => {
      const { rows } = await db.query(
        `select read_seq = (select max(seq) from journal where journal.shard = $1) as is_all
          from journal_readers where reader = 'analytics' and shard = $1`,
        [shard],
      )
      return rows[0]?.is_all as boolean
    })

  const [left, kept] = [await play('other'), await play()]
  await isFolded()
  assert.deepEqual(await told(), { lobby_count: 2, player_count: 2, last: 2, stopped: 0, failed: 0 })

  // Into another minute. Who does not connect has a seat for two.
  platform.advance(65_000)
  // Who holds the positions is a folder to all others: none of them reads on.
  await db.query("begin; select from journal_readers where reader = 'analytics' for update")
  await client.call(deleteMatchmakerLobby, { params: { game_id: game.game_id, lobby_id: left } })
  assert.equal(await platform.stopReasonOf(left), 'requested')
  platform.advance(5_000)
  const now_ms = platform.ctx.now()
  const { data_sets } = await client.call(getAnalytics, {
    query: {
      query_start: new Date(now_ms - 1_000).toISOString(),
      query_end: new Date(now_ms + 1_000).toISOString(),
      game_ids: [game.game_id],
      namespace_ids: [game.namespace_id],
      variants: ['lobby_count_by_game_mode'],
    },
  })
  const { game_mode_name_id } = data_sets[0]!.lobby_count_by_game_mode!
  assert.deepEqual([...new Set(game_mode_name_id)], ['default'], 'what has just ended is no line of a window after it')
  await play()
  platform.advance(30_000)
  await play()
  const last = await db.query('select max(seq) as seq from journal where shard = $1', [shard])
  await db.query('delete from journal where shard = $1 and seq < $2', [shard, last.rows[0].seq])
  await db.query('commit')
  assert.ok((await told()).lobby_count >= 1, 'meanwhile there is an answer')
  await isFolded()
  assert.deepEqual(await told(), { lobby_count: 1, player_count: 1, last: 1, stopped: 1, failed: 0 })

  await play()
  assert.deepEqual(await told(), { lobby_count: 2, player_count: 2, last: 2, stopped: 1, failed: 0 })
  await client.call(deleteMatchmakerLobby, { params: { game_id: game.game_id, lobby_id: kept } })
  await isFolded()
  assert.deepEqual(await told(), { lobby_count: 1, player_count: 1, last: 1, stopped: 2, failed: 0 })
})
