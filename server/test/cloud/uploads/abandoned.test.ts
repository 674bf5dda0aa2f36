import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { createGameCdnSite, deleteGame, listGameCdnSites } from '@musterhost/contract'
import { sweep } from '../../../src/cloud/sweep/sweep.ts'
import { startPlatform } from '../../support/platform.ts'
import { newGame, refused } from '../steps.ts'

const SITES_MAX = 1_000
const AT_ONCE = 50
const SWEEPS_MAX = 5
const DAY_MS = 24 * 60 * 60_000

test('uploads that nobody sends stop at the quota, take no disk, and make room after a day', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { client, ctx } = platform
  const { game_id } = await newGame(platform)
  const params = { game_id }
  const files = [{ path: 'a', content_length: 1_000_000 }]
  const prepare = () => client.call(createGameCdnSite, { params, body: { display_name: 'Site', files } })
  let made = 0
  while (made < SITES_MAX) {
    await Promise.all(Array.from({ length: AT_ONCE }, prepare))
    made += AT_ONCE
  }
  const { metadata } = await refused('QUOTA_REACHED', prepare())
  assert.deepEqual(metadata, { quota: 'sites', limit: SITES_MAX, used: SITES_MAX })
  const stored = await readdir(join(platform.data_dir, 'objects'), { recursive: true })
  assert.deepEqual(
    stored.filter((name) => name !== 'incoming'),
    [],
  )

  platform.advance(DAY_MS - 60_000)
  await sweep(ctx)
  await refused('QUOTA_REACHED', prepare())
  platform.advance(2 * 60_000)
  const sites = async () => (await client.call(listGameCdnSites, { params })).sites.length
  let sweeps = 0
  while ((await sites()) > 0 && sweeps < SWEEPS_MAX) {
    await sweep(ctx)
    sweeps++
  }
  assert.equal(await sites(), 0)
  await prepare()
  await client.call(deleteGame, { params })
})
