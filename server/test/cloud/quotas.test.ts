import assert from 'node:assert/strict'
import test from 'node:test'
import {
  ApiError,
  addNamespaceDomain,
  consumeGroupInvite,
  createGame,
  createGameBuild,
  createGameCdnSite,
  createGameNamespace,
  createGroup,
  createGroupInvite,
  getGameNamespaceById,
  getGroupMembers,
  kickGroupMember,
  removeNamespaceDomain,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { newId } from '../../src/ids.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { buildBody, newGame, refused } from './steps.ts'

const CREATES = 100
const NEW_DOMAIN = { domain: 'one-more.example.com' }

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

async function newPerson({ ctx, as }: Platform): Promise<Client> {
  const now_ms = ctx.now()
  const [user_id, session_id, now] = [newId(now_ms), newId(now_ms), new Date(now_ms)]
  const person = { user_id, email: `${user_id}@example.com`, display_name: 'Person', create_ts: now }
  await ctx.db.insertInto('users').values(person).execute()
  const expire_ts = new Date(now_ms + 3_600_000)
  const session = { session_id, user_id, create_ts: now, refresh_ts: now, expire_ts }
  await ctx.db.insertInto('user_sessions').values(session).execute()
  return as(ctx.keys.issue({ kind: 'user', user_id, session_id }, { now_ms, lifetime_ms: 3_600_000 }))
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
      MUSTER_QUOTA_DOMAINS: '12',
      MUSTER_QUOTA_MEMBERS: '20',
    },
  })
  const { client } = platform
  const { game_id, group_id, version_id, prod_id, staging_id } = await newGame(platform)
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

  await t.test('domains, of all namespaces of its games together', async () => {
    const namespaces = [
      { game_id, namespace_id: prod_id },
      { game_id, namespace_id: staging_id },
    ] as const
    const create = (index: number) => {
      const namespace = namespaces[index % 2]!
      // Of each namespace's own limit these stay clear.
      return client.call(addNamespaceDomain, { params: namespace, body: { domain: `d${index % 14}.example.com` } })
    }
    const outcomes = await Promise.allSettled(Array.from({ length: CREATES }, (_, index) => create(index)))
    assert.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 12)
    const params = namespaces[0]
    const error = await refused('QUOTA_REACHED', client.call(addNamespaceDomain, { params, body: NEW_DOMAIN }))
    assert.deepEqual(error.metadata, { quota: 'domains', limit: 12, used: 12 })
    const { namespace } = await client.call(getGameNamespaceById, { params })
    const { domain } = namespace.config.cdn.domains[0]!
    await client.call(removeNamespaceDomain, { params: { ...params, domain } })
    await client.call(addNamespaceDomain, { params, body: NEW_DOMAIN })
  })

  await t.test('members, counted when they join and not when they are invited', async () => {
    const params = { group_id }
    const invite = () => client.call(createGroupInvite, { params, body: { use_count: 60 } })
    const invites = [await invite(), await invite()]
    const people = await Promise.all(Array.from({ length: CREATES + 1 }, () => newPerson(platform)))
    const join = (index: number) =>
      people[index]!.call(consumeGroupInvite, { params: { group_invite_code: invites[index % 2]!.code } })
    assert.equal(await successes('members', 20, join), 20)
    const { members } = await client.call(getGroupMembers, { params })
    assert.equal(members.length, 20)
    await client.call(kickGroupMember, { params: { ...params, identity_id: members[0]!.identity.identity_id } })
    // Kicking has revoked what the one who was kicked may know.
    const { code } = await invite()
    await people.at(-1)!.call(consumeGroupInvite, { params: { group_invite_code: code } })
  })

  await t.test('another group is not concerned', async () => {
    const { group_id: third } = await client.call(createGroup, { body: { display_name: 'Others' } })
    const body = { display_name: 'Game', developer_group_id: third }
    const game = await client.call(createGame, { body })
    await client.call(createGameBuild, { params: game, body: buildBody(Buffer.alloc(1)) })
  })
})
