// A runner whose disk is nearly full, from the disk itself to what a player hears: real lobbies on a small disk.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findLobby } from '@musterhost/contract'
import { refused } from '../cloud/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { mountSmallDisk } from '../support/small-disk.ts'
import { until } from '../support/until.ts'

const DISK_BYTES = 256 * 1024 * 1024
const FREE_BYTES_MIN = 100_000_000
const ENV = {
  MUSTER_LOBBY_DISK_FREE_MB_MIN: '100',
  MUSTER_UPLOAD_DISK_FREE_MB_MIN: '0',
  MUSTER_SANDBOX: 'off',
}
/** The matchmaker reads the disks every two seconds. Until then each find opens a lobby: about 80 of them. */
const FINDS_MAX = 100_000
const FULL = { region: 'local', reason: 'disk_full', setting: 'MUSTER_LOBBY_DISK_FREE_MB_MIN' }

/** One lobby has room for all players of the first game; each player of the second needs a separate lobby. */
async function twoGames(platform: Platform): Promise<[TestGame, TestGame]> {
  const limits = { max_players_per_client: FINDS_MAX, lobby_count_max: FINDS_MAX }
  const shared = await platform.game({ limits })
  return [shared, await platform.game({ limits, matchmaker: { game_modes: { default: { max_players: 1 } } } })]
}

async function find({ player }: TestGame): Promise<string> {
  const { lobby } = await player.call(findLobby, { body: { game_modes: ['default'] } })
  return lobby.lobby_id
}

/** Until the word has come round: that of the runner to the database, and that of the database to the matchmaker. */
function refusal(game: TestGame): Promise<{ metadata: unknown; code: string }> {
  return until('no new lobby is opened for want of disk', () =>
    find(game).then(
      () => null,
      (error) => (error.code === 'MATCHMAKER_REGION_FULL' ? error : null),
    ),
  )
}

function found(game: TestGame): Promise<string> {
  return until('a lobby is opened again', () => find(game).catch(() => null))
}

test('a disk that fills up: no new lobby is opened, those that run are found, and free space ends it', async (t) => {
  const disk = await mountSmallDisk(t, DISK_BYTES)
  if (disk === null) return
  let platform: Platform | undefined
  t.after(async () => {
    await platform?.close()
    await disk.unmount()
  })
  platform = await startPlatform(t, { roles: 'api,matchmaker,runner', data_dir: disk.folder, env: ENV })
  const [shared, single] = await twoGames(platform)
  const lobby_id = await find(shared)
  await find(single)

  await disk.leave(FREE_BYTES_MIN - 1_000_000)
  const { code, metadata } = await refusal(single)
  assert.deepEqual({ code, metadata }, { code: 'MATCHMAKER_REGION_FULL', metadata: FULL })
  assert.equal(await find(shared), lobby_id)

  await disk.leave(FREE_BYTES_MIN + 20_000_000)
  await found(single)
  assert.equal(await find(shared), lobby_id)
})

test('a node with too little disk gets no lobby, and the region is full when that holds for all of its nodes', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker', env: ENV })
  platform.playServers(['roomy'])
  const { pool } = platform.ctx
  const [, single] = await twoGames(platform)
  const report = (runner_id: string, regions: string[], free_bytes: number): Promise<unknown> =>
    pool.query(
      `insert into runners (runner_id, regions, disk_free_bytes, port_count) values ($1, $2, $3, 6000)
        on conflict (runner_id) do update set report_seq = runners.report_seq + 1, disk_free_bytes = excluded.disk_free_bytes`,
      [runner_id, regions, free_bytes],
    )
  const nodeOf = async (lobby_id: string): Promise<string | null> => {
    const { node_id } = await platform.ctx.db
      .selectFrom('lobbies')
      .where('lobby_id', '=', lobby_id)
      .select('node_id')
      .executeTakeFirstOrThrow()
    return node_id
  }
  await report('elsewhere', ['fra'], 0)
  await report('low', ['fra', 'local'], FREE_BYTES_MIN - 1)
  assert.deepEqual((await refusal(single)).metadata, FULL)

  await report('roomy', ['local'], FREE_BYTES_MIN)
  assert.equal(await nodeOf(await found(single)), 'roomy')
  await report('roomy', ['local'], FREE_BYTES_MIN - 1)
  assert.deepEqual((await refusal(single)).metadata, FULL)

  // Another matchmaker knows it before its first request.
  const database_url = platform.ctx.config.database_url!
  await platform.close()
  const next = await startPlatform(t, { database_url, data_dir: platform.data_dir, env: ENV })
  const player = { ...single, player: next.as(single.public_token) }
  next.playServers(['roomy'])
  assert.deepEqual((await refused('MATCHMAKER_REGION_FULL', find(player))).metadata, FULL)
})
