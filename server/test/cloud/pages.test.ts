// Lists that are continued page by page, quotas, and the entries of a namespace as people look through them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createCloudToken,
  createGameBuild,
  createGameCdnSite,
  createGameVersion,
  getGroupQuotas,
  listGameBuilds,
  listGameCdnSites,
  listGameCloudTokens,
  listGameVersions,
  listKvDirectories,
  listKvKeys,
  putKvBatch,
} from '@musterhost/contract'
import { personOf } from '../http/world.ts'
import { startPlatform } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'

/** The ids of all pages, one entry each. */
async function idsOfPages(read: (before: string | undefined) => Promise<{ ids: string[]; is_cut: boolean }>) {
  const ids: string[] = []
  for (let pages = 0; pages < 100; pages++) {
    const page = await read(ids.at(-1))
    ids.push(...page.ids)
    if (!page.is_cut) return ids
  }
  throw new Error('The pages do not end.')
}

const before = (name: string, id: string | undefined) => ({ limit: 1, ...(id === undefined ? {} : { [name]: id }) })

test('builds, sites, tokens and versions are listed page by page, each once, and not of another game', async (t) => {
  const platform = await startPlatform(t)
  const { client } = platform
  const [game, other] = [await platform.game(), await platform.game()]
  const params = { game_id: game.game_id }
  const file = { path: 'server.tar.gz', content_length: 1 }
  for (const name of ['a', 'b', 'c']) {
    const body = { display_name: name, image_tag: `server:${name}`, image_file: file }
    await client.call(createGameBuild, { params, body })
    const site = { display_name: name, files: [{ path: 'index.html', content_length: 1 }] }
    await client.call(createGameCdnSite, { params, body: site })
    await client.call(createCloudToken, { params })
    await client.call(createGameVersion, { params, body: { display_name: name, config: {} } })
  }
  const all = {
    builds: (await client.call(listGameBuilds, { params })).builds.map(({ build_id }) => build_id),
    sites: (await client.call(listGameCdnSites, { params })).sites.map(({ site_id }) => site_id),
    tokens: (await client.call(listGameCloudTokens, { params })).tokens.map(({ token_id }) => token_id),
    versions: (await client.call(listGameVersions, { params })).versions,
  }
  assert.deepEqual([all.builds.length, all.sites.length, all.tokens.length, all.versions.length], [4, 3, 3, 5])
  const deployed = all.versions.find(({ version_id }) => version_id === game.version_id)!
  assert.deepEqual(deployed.namespace_ids, [game.namespace_id])

  const builds = idsOfPages(async (id) => {
    const page = await client.call(listGameBuilds, { params, query: before('before_build_id', id) })
    return { ids: page.builds.map(({ build_id }) => build_id), is_cut: page.is_cut }
  })
  assert.deepEqual(await builds, all.builds)
  const sites = idsOfPages(async (id) => {
    const page = await client.call(listGameCdnSites, { params, query: before('before_site_id', id) })
    return { ids: page.sites.map(({ site_id }) => site_id), is_cut: page.is_cut }
  })
  assert.deepEqual(await sites, all.sites)
  const tokens = idsOfPages(async (id) => {
    const page = await client.call(listGameCloudTokens, { params, query: before('before_token_id', id) })
    return { ids: page.tokens.map(({ token_id }) => token_id), is_cut: page.is_cut }
  })
  assert.deepEqual(await tokens, all.tokens)
  const versions = idsOfPages(async (id) => {
    const page = await client.call(listGameVersions, { params, query: before('before_version_id', id) })
    return { ids: page.versions.map(({ version_id }) => version_id), is_cut: page.is_cut }
  })
  assert.deepEqual(
    await versions,
    all.versions.map(({ version_id }) => version_id),
  )
  const foreign = await client.call(listGameVersions, { params: { game_id: other.game_id } })
  assert.equal(JSON.stringify(foreign).includes(game.version_id), false)
})

test('a viewer reads the quotas of the group, and a stranger does not', async (t) => {
  const platform = await startPlatform(t, { env: { MUSTER_QUOTA_GAMES: '3', MUSTER_QUOTA_BUILDS: '0' } })
  const [game, other] = [await platform.game(), await platform.game()]
  const params = { group_id: game.group_id }
  const viewer = platform.as(await personOf(platform, game.group_id, 'viewer'))
  const { quotas } = await viewer.call(getGroupQuotas, { params })
  const quotaOf = (name: string) => quotas.find(({ quota }) => quota === name)
  assert.deepEqual(quotaOf('games'), { quota: 'games', used: 1, limit: 3 })
  assert.deepEqual(quotaOf('builds'), { quota: 'builds', used: 1 }, 'without a limit')
  const stranger = platform.as(await personOf(platform, other.group_id, 'owner'))
  assert.equal((await failureOf(stranger.call(getGroupQuotas, { params }))).code, 'GROUP_NOT_FOUND')
})

test('directories and keys are listed in pages, by their beginning, for members of the group only', async (t) => {
  const platform = await startPlatform(t)
  const { client } = platform
  const [game, other] = [await platform.game(), await platform.game()]
  const { namespace_id } = game
  const many = Array.from({ length: 300 }, (_, index) => `many/${String(index).padStart(3, '0')}/entry`)
  const keys = ['alone', 'players/ada', 'players/grace', 'players/scores/ada', ...many]
  for (let from = 0; from < keys.length; from += 64) {
    const entries = keys.slice(from, from + 64).map((key) => ({ key, value: { key } }))
    await client.call(putKvBatch, { body: { namespace_id, entries } })
  }
  const viewer = platform.as(await personOf(platform, game.group_id, 'viewer'))
  const first = await viewer.call(listKvDirectories, { query: { namespace_id } })
  const query = { namespace_id, anchor: first.anchor! }
  const second = await viewer.call(listKvDirectories, { query })
  assert.equal(first.directories.length, 256)
  assert.equal(second.anchor, undefined)
  const directories = [...first.directories, ...second.directories]
  const named = keys.map((key) => key.slice(0, Math.max(0, key.lastIndexOf('/'))))
  assert.deepEqual(
    directories.map((directory) => directory.replace(/\/$/, '')),
    [...new Set(named)].toSorted(),
  )
  const players = await viewer.call(listKvDirectories, { query: { namespace_id, prefix: 'players' } })
  assert.equal(players.directories.length, 2)

  const found = await viewer.call(listKvKeys, { query: { namespace_id, prefix: 'players/' } })
  assert.deepEqual(
    found.keys.map(({ key, value_bytes }) => [key, value_bytes]),
    ['players/ada', 'players/grace', 'players/scores/ada'].map((key) => [key, JSON.stringify({ key }).length]),
  )
  const page = await viewer.call(listKvKeys, { query: { namespace_id } })
  const rest = await viewer.call(listKvKeys, { query: { namespace_id, anchor: page.anchor! } })
  assert.deepEqual(
    [...page.keys, ...rest.keys].map(({ key }) => key),
    keys.toSorted(),
  )

  const stranger = platform.as(await personOf(platform, other.group_id, 'owner'))
  for (const operation of [listKvDirectories, listKvKeys]) {
    const refusal = await failureOf(stranger.call(operation, { query: { namespace_id } }))
    assert.equal(refusal.code, 'NAMESPACE_NOT_FOUND')
  }
})
