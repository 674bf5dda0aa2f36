// Namespaces that expire: the matchmaker stops their lobbies, and the api deletes them.
import assert from 'node:assert/strict'
import test from 'node:test'
import {
  createGameNamespace,
  deleteGameNamespace,
  getGameById,
  getGameNamespaceById,
  listGroupAuditEvents,
  updateGameNamespaceExpiry,
  updateGameNamespaceVersion,
} from '@musterhost/contract'

import { createDatabase } from '../support/database.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { detailsOf, newGame, refused } from './steps.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

const inMs = ({ ctx }: Platform, ms: number): string => new Date(ctx.now() + ms).toISOString()

const isThere = async ({ ctx }: Platform, namespace_id: string): Promise<boolean> =>
  (await ctx.db
    .selectFrom('namespaces')
    .select('namespace_id')
    .where('namespace_id', '=', namespace_id)
    .executeTakeFirst()) !== undefined

/** Lets the time pass that requests under way have. */
const untilDeleted = (platform: Platform, namespace_id: string) =>
  until('the namespace is deleted', async () => {
    platform.stepWallClock(1_000)
    return !(await isThere(platform, namespace_id))
  })

const expires = ({ client }: Platform, { game_id, namespace_id }: TestGame, expire_ts?: string) =>
  client.call(updateGameNamespaceExpiry, {
    params: { game_id, namespace_id },
    body: expire_ts === undefined ? {} : { expire_ts },
  })

test('a namespace says when it expires, and a wrong time is refused by its field', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { client } = platform
  const { game_id, version_id } = await newGame(platform)
  const params = { game_id }
  const create = (name_id: string, expire_ts?: string) =>
    client.call(createGameNamespace, {
      params,
      body: { display_name: name_id, name_id, version_id, ...(expire_ts === undefined ? {} : { expire_ts }) },
    })
  const expiryOf = async (namespace_id: string) =>
    (await client.call(getGameNamespaceById, { params: { game_id, namespace_id } })).namespace.expire_ts
  const forever = await create('forever')
  assert.equal(await expiryOf(forever.namespace_id), undefined)
  const expire_ts = inMs(platform, DAY_MS)
  const { namespace_id } = await create('preview', expire_ts)
  assert.equal(await expiryOf(namespace_id), expire_ts)
  const { game } = await client.call(getGameById, { params })
  assert.deepEqual(game.namespaces.map((row) => [row.name_id, row.expire_ts]).slice(0, 2), [
    ['preview', expire_ts],
    ['forever', undefined],
  ])
  const later = inMs(platform, 2 * DAY_MS)
  const update = (body: { expire_ts?: string }) =>
    client.call(updateGameNamespaceExpiry, { params: { game_id, namespace_id }, body })
  await update({ expire_ts: later })
  assert.equal(await expiryOf(namespace_id), later)
  const reasonOf = async (wrong: string) => {
    const [of_create, of_update] = [
      await refused('VALIDATION_ERROR', create('wrong', wrong)),
      await refused('VALIDATION_ERROR', update({ expire_ts: wrong })),
    ]
    assert.deepEqual(detailsOf(of_create), detailsOf(of_update))
    return detailsOf(of_update)[0]
  }
  assert.deepEqual(await reasonOf(inMs(platform, -1)), { path: ['expire_ts'], reason: 'too_low' })
  assert.deepEqual(await reasonOf(inMs(platform, 367 * DAY_MS)), { path: ['expire_ts'], reason: 'too_high' })
  assert.deepEqual((await reasonOf('tomorrow'))?.path, ['expire_ts'])
  await update({})
  assert.equal(await expiryOf(namespace_id), undefined)
})

test('an expired namespace stops its lobbies and is deleted, with an event of the platform', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const { game_id, group_id, namespace_id, version_id } = game
  const params = { game_id, namespace_id }
  await expires(platform, game, inMs(platform, MINUTE_MS))
  const seat = await game.find()
  platform.stepWallClock(MINUTE_MS)
  await platform.refuses('NAMESPACE_NOT_FOUND', () => game.find())
  const calls = [
    () => platform.client.call(getGameNamespaceById, { params }),
    () => platform.client.call(updateGameNamespaceVersion, { params, body: { version_id } }),
    () => expires(platform, game, inMs(platform, DAY_MS)),
  ]
  for (const call of calls) await refused('NAMESPACE_NOT_FOUND', call())
  await untilDeleted(platform, namespace_id)
  assert.equal(await platform.stopReasonOf(seat.lobby.lobby_id), 'requested')
  assert.equal(await platform.removeReasonOf(platform.playerIdOf(seat)), 'lobby_stopped')
  for (const call of calls) await refused('NAMESPACE_NOT_FOUND', call())
  const { events } = await platform.client.call(listGroupAuditEvents, {
    params: { group_id },
    query: { operation: 'games.namespaces.deleteGameNamespace' },
  })
  assert.equal(events.length, 1)
  const [event] = events
  assert.deepEqual(
    [event!.actor, event!.client_ip, event!.namespace_id, event!.outcome],
    [{ kind: 'platform' }, '-', namespace_id, 'done'],
  )
  const changeOf = (member: string) => event!.changes.find((change) => change.member === member)
  assert.equal(changeOf('reason')?.after, 'The namespace has expired.')
  assert.notEqual(changeOf('expire_ts')?.before, undefined)
})

test('the refusal of an expired namespace says when it expired, and its name is free soon', async (t) => {
  // Without a matchmaker, its lobby keeps the namespace.
  const platform = await startPlatform(t, { roles: 'api' })
  const { client } = platform
  const { game_id, version_id } = await newGame(platform)
  const expire_ts = inMs(platform, MINUTE_MS)
  const body = { display_name: 'Preview', name_id: 'preview', version_id, expire_ts }
  const { namespace_id } = await client.call(createGameNamespace, { params: { game_id }, body })
  platform.stepWallClock(MINUTE_MS)
  const found = await refused(
    'NAMESPACE_NOT_FOUND',
    client.call(getGameNamespaceById, { params: { game_id, namespace_id } }),
  )
  assert.deepEqual([found.metadata, found.message], [{ expire_ts }, `The namespace expired at ${expire_ts}.`])
  const { game } = await client.call(getGameById, { params: { game_id } })
  assert.ok(!game.namespaces.some((row) => row.namespace_id === namespace_id))
  const again = { ...body, expire_ts: inMs(platform, DAY_MS) }
  const taken = await refused('NAME_TAKEN', client.call(createGameNamespace, { params: { game_id }, body: again }))
  assert.match(taken.message, /has expired and is being deleted\. Try again/)
  await untilDeleted(platform, namespace_id)
  await client.call(createGameNamespace, { params: { game_id }, body: again })
})

test('a namespace that is prolonged in time, or whose clock steps back, lives', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  await expires(platform, game, inMs(platform, MINUTE_MS))
  const seat = await game.find()
  await expires(platform, game, inMs(platform, 10 * MINUTE_MS))
  const other = await platform.game()
  await expires(platform, other, inMs(platform, MINUTE_MS))
  platform.stepWallClock(2 * MINUTE_MS)
  await untilDeleted(platform, other.namespace_id)
  assert.equal((await game.find()).lobby.lobby_id, seat.lobby.lobby_id)
  platform.stepWallClock(-DAY_MS)
  assert.equal((await game.find()).lobby.lobby_id, seat.lobby.lobby_id)
})

test('a platform that was away when a namespace expired deletes it, its lobbies too', async (t) => {
  const database_url = await createDatabase(t)
  const first = await startPlatform(t, { database_url })
  first.playServers()
  const game = await first.game()
  await expires(first, game, inMs(first, MINUTE_MS))
  const seat = await game.find()
  await first.close()
  const second = await startPlatform(t, { database_url, data_dir: first.data_dir })
  second.stepWallClock(MINUTE_MS)
  await untilDeleted(second, game.namespace_id)
  assert.equal(await second.stopReasonOf(seat.lobby.lobby_id), 'requested')
})

test('of many deletions at the same time, by requests and by the job, one happens', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { game_id, group_id, version_id } = await newGame(platform)
  const body = { display_name: 'Preview', name_id: 'preview', version_id, expire_ts: inMs(platform, MINUTE_MS) }
  const { namespace_id } = await platform.client.call(createGameNamespace, { params: { game_id }, body })
  platform.stepWallClock(2 * MINUTE_MS)
  const params = { game_id, namespace_id }
  const deletions = Array.from({ length: 8 }, () => platform.client.call(deleteGameNamespace, { params }))
  await Promise.allSettled(deletions)
  await untilDeleted(platform, namespace_id)
  const { events } = await platform.client.call(listGroupAuditEvents, {
    params: { group_id },
    query: { operation: 'games.namespaces.deleteGameNamespace', outcome: 'done' },
  })
  assert.equal(events.length, 1)
})
