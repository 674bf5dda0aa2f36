import assert from 'node:assert/strict'
import test from 'node:test'
import {
  ApiError,
  createGame,
  createGameBuild,
  createGameCdnSite,
  createGameNamespace,
  createGroup,
} from '@muster/contract'
import { startPlatform } from '../platform.ts'
import { buildBody, newGame, refused } from './steps.ts'

const CREATES = 100

/** How many of a hundred at once succeed; every refusal must name the limit and what is used of it. */
async function successes(quota: string, limit: number, create: (index: number) => Promise<unknown>): Promise<number> {
  const outcomes = await Promise.allSettled(Array.from({ length: CREATES }, (_, index) => create(index)))
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') continue
    const error = outcome.reason as ApiError
    assert.ok(error instanceof ApiError && error.code === 'QUOTA_REACHED', String(error))
    assert.equal(error.status, 409)
    const { quota: named, limit: told, used } = error.metadata
    assert.deepEqual([named, told], [quota, limit])
    assert.ok(quota === 'bytes' || used === limit)
  }
  return outcomes.filter((outcome) => outcome.status === 'fulfilled').length
}

test('a group gets exactly what it may have when a hundred ask at once', async (t) => {
  const platform = await startPlatform(t, {
    roles: 'api',
    env: {
      MUSTER_QUOTA_GAMES: '5',
      MUSTER_QUOTA_NAMESPACES: '30',
      MUSTER_QUOTA_BUILDS: '20',
      MUSTER_QUOTA_SITES: '20',
      MUSTER_QUOTA_STORAGE_MB: '1',
    },
  })
  const { client } = platform
  const { game_id, group_id, version_id } = await newGame(platform)
  const other = await newGame(platform)
  const params = { game_id }
  const site = (content_length: number) => ({ display_name: 'S', files: [{ path: 'a', content_length }] })

  await t.test('games', async () => {
    const body = { display_name: 'Game', developer_group_id: group_id }
    assert.equal(await successes('games', 5, () => client.call(createGame, { body })), 4)
  })

  await t.test('namespaces, of all its games together', async () => {
    const create = (index: number) =>
      client.call(createGameNamespace, { params, body: { display_name: 'N', name_id: `n${index}`, version_id } })
    assert.equal(await successes('namespaces', 30, create), 30 - 2 * 5)
    const body = { display_name: 'Game', developer_group_id: other.group_id }
    for (let game = 0; game < 4; game++) await client.call(createGame, { body })
  })

  await t.test('builds', async () => {
    const create = () => client.call(createGameBuild, { params, body: buildBody(Buffer.alloc(1)) })
    assert.equal(await successes('builds', 20, create), 20)
  })

  await t.test('sites', async () => {
    assert.equal(await successes('sites', 20, () => client.call(createGameCdnSite, { params, body: site(1) })), 20)
  })

  await t.test('bytes, to the last one, counted from the moment an upload is prepared', async () => {
    const own = { game_id: other.game_id }
    const create = () => client.call(createGameCdnSite, { params: own, body: site(200_001) })
    assert.equal(await successes('bytes', 1_000_000, create), 4)
    const error = await refused('QUOTA_REACHED', client.call(createGameCdnSite, { params: own, body: site(199_997) }))
    assert.deepEqual(error.metadata, { quota: 'bytes', limit: 1_000_000, used: 800_004, wanted: 199_997 })
    await client.call(createGameCdnSite, { params: own, body: site(199_996) })
    await refused('QUOTA_REACHED', client.call(createGameCdnSite, { params: own, body: site(1) }))
  })

  await t.test('another group is not concerned', async () => {
    const { group_id: third } = await client.call(createGroup, { body: { display_name: 'Others' } })
    const body = { display_name: 'Game', developer_group_id: third }
    const game = await client.call(createGame, { body })
    await client.call(createGameBuild, { params: game, body: buildBody(Buffer.alloc(1)) })
  })
})
