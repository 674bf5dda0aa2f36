import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import test, { type TestContext } from 'node:test'
import {
  createCloudToken,
  createGameNamespaceTokenDevelopment,
  createGameVersion,
  deleteGameNamespace,
  deleteKvBatch,
  deleteKvEntry,
  getKvBatch,
  getKvEntry,
  KV_VALUE_BYTES_MAX,
  listKvEntries,
  putKvBatch,
  putKvEntry,
  setupIdentity,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import fc from 'fast-check'
import { refused } from '../cloud/steps.ts'
import { ask, bearer } from '../http/ask.ts'

import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'

type World = { platform: Platform; game: TestGame; backend: Client; namespace_id: string }

/** A backend of a game, which names the namespace. */
async function start(t: TestContext, env: Record<string, string> = {}): Promise<World> {
  const platform = await startPlatform(t, { env })
  const game = await platform.game()
  return { platform, game, backend: await backendOf(platform, game), namespace_id: game.namespace_id }
}

async function backendOf(platform: Platform, { game_id }: TestGame): Promise<Client> {
  return platform.as((await platform.client.call(createCloudToken, { params: { game_id } })).token)
}

const get = async ({ backend, namespace_id }: World, key: string) =>
  (await backend.call(getKvEntry, { query: { key, namespace_id } })).value

test('a stored entry is read by every token of its namespace, and by no other', async (t) => {
  const world = await start(t)
  const { platform, game, backend, namespace_id } = world
  const other = await platform.game()
  platform.playServers()
  const seat = await game.find()
  const lobby = platform.as(platform.lobbyToken({ lobby_id: seat.lobby.lobby_id, namespace_id }))
  const { identity_token } = await game.player.call(setupIdentity, { body: {} })
  const identity = platform.as(identity_token)
  const { token } = await platform.client.call(createGameNamespaceTokenDevelopment, {
    params: { game_id: game.game_id, namespace_id },
    body: { hostname: 'localhost' },
  })
  const key = 'players/ada'

  await lobby.call(putKvEntry, { body: { key, value: { score: 7 } } })
  assert.deepEqual(await get(world, key), { score: 7 })
  for (const reader of [lobby, identity, platform.as(token)]) {
    assert.deepEqual((await reader.call(getKvEntry, { query: { key } })).value, { score: 7 })
    assert.deepEqual((await reader.call(getKvEntry, { query: { key, namespace_id } })).value, { score: 7 })
  }
  await refused('API_FORBIDDEN', identity.call(putKvEntry, { body: { key, value: 1 } }))
  await refused('API_FORBIDDEN', game.player.call(getKvEntry, { query: { key } }))
  await refused('NAMESPACE_NOT_FOUND', lobby.call(getKvEntry, { query: { key, namespace_id: other.namespace_id } }))
  await refused('NAMESPACE_NOT_FOUND', backend.call(getKvEntry, { query: { key, namespace_id: other.namespace_id } }))
  const missing = await refused('VALIDATION_ERROR', backend.call(getKvEntry, { query: { key } }))
  assert.deepEqual(missing.metadata.errors, [
    {
      path: ['namespace_id'],
      reason: 'required',
      message: 'namespace_id is missing: this token does not stand for a namespace.',
    },
  ])
  const elsewhere = { ...world, backend: await backendOf(platform, other), namespace_id: other.namespace_id }
  assert.equal(await get(elsewhere, key), null)

  await lobby.call(deleteKvEntry, { query: { key } })
  assert.equal(await get(world, key), null)
})

test('any JSON is returned as it was stored, and a refusal of a large value names its size', async (t) => {
  const world = await start(t)
  const { backend, namespace_id } = world
  const values = [null, 0, -1.5, 0.1, '', 'é😀', [], {}, [[null]], { a: { b: [true, false] } }, 'x'.repeat(200_000)]
  for (const value of values) {
    await backend.call(putKvEntry, { body: { namespace_id, key: 'k', value } })
    assert.deepEqual(await get(world, 'k'), value)
  }
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ noUnicodeString: false }), async (value) => {
      const text = JSON.stringify(value)
      fc.pre(!text.includes('\\u') && !text.includes('__proto__'))
      const entries = [{ key: 'any', value: JSON.parse(text) as unknown }]
      // Integers that a double cannot represent are refused, here as everywhere.
      fc.pre(!/\d{16}|\d[eE]/.test(text))
      await backend.call(putKvBatch, { body: { namespace_id, entries } })
      assert.deepEqual(await get(world, 'any'), entries[0]!.value)
    }),
    { numRuns: 40 },
  )

  const longest = 'x'.repeat(KV_VALUE_BYTES_MAX - 2)
  await backend.call(putKvEntry, { body: { namespace_id, key: 'k', value: longest } })
  const refusal = await refused(
    'KV_VALUE_TOO_LONG',
    backend.call(putKvEntry, { body: { namespace_id, key: 'k', value: `${longest}x` } }),
  )
  assert.deepEqual(refusal.metadata, { path: ['value'], bytes: KV_VALUE_BYTES_MAX + 1, bytes_max: KV_VALUE_BYTES_MAX })
  assert.equal(await get(world, 'k'), longest)
})

test('a key has 1 to 511 bytes', async (t) => {
  const world = await start(t)
  const { backend, namespace_id } = world
  const put = (key: string) => backend.call(putKvEntry, { body: { namespace_id, key, value: 1 } })
  for (const key of ['k', 'é'.repeat(255), 'k'.repeat(511), ' ', '../../etc/passwd', '%00', "';--"]) {
    await put(key)
    assert.equal(await get(world, key), 1)
  }
  for (const key of ['', 'é'.repeat(256), 'k'.repeat(512)]) {
    const { metadata } = await refused('KV_KEY_VALIDATION_ERROR', put(key))
    assert.deepEqual(metadata, { path: ['key'], bytes: Buffer.byteLength(key), bytes_max: 511 })
    await refused('KV_KEY_VALIDATION_ERROR', backend.call(getKvEntry, { query: { namespace_id, key } }))
    await refused('KV_KEY_VALIDATION_ERROR', backend.call(deleteKvEntry, { query: { namespace_id, key } }))
  }
  await refused('KV_KEY_VALIDATION_ERROR', backend.call(getKvEntry, { query: { namespace_id, key: 'a\0b' } }))
  const directory = 'a\0'
  await refused('VALIDATION_ERROR', backend.call(listKvEntries, { query: { namespace_id, directory } }))
})

test('a batch is written whole or not at all', async (t) => {
  const world = await start(t)
  const { backend, namespace_id } = world
  const keys = Array.from({ length: 64 }, (_, i) => `k${String(i).padStart(2, '0')}`)
  const putBatch = (entries: { key: string; value: unknown }[]) =>
    backend.call(putKvBatch, { body: { namespace_id, entries } })
  const getBatch = (asked: string[]) => backend.call(getKvBatch, { query: { namespace_id, keys: asked } })

  await putBatch(keys.map((key, value) => ({ key, value })))
  const { entries } = await getBatch([...keys].reverse())
  assert.deepEqual(
    entries,
    keys.map((key, value) => ({ key, value })),
  )
  assert.deepEqual((await getBatch(['nothing', 'k01', 'k01'])).entries, [{ key: 'k01', value: 1 }])

  await refused('KV_ENTRIES_MISSING', putBatch([]))
  await refused('KV_KEYS_MISSING', getBatch([]))
  await refused('KV_BATCH_TOO_LARGE', putBatch([...keys, 'one-more'].map((key) => ({ key, value: 0 }))))
  await refused('KV_BATCH_TOO_LARGE', getBatch([...keys, 'one-more']))
  const half = [
    { key: 'k00', value: 'changed' },
    { key: '', value: 1 },
  ]
  const { metadata } = await refused('KV_KEY_VALIDATION_ERROR', putBatch(half))
  assert.deepEqual(metadata.path, ['entries', '1', 'key'])
  await refused('VALIDATION_ERROR', putBatch([keys[0]!, keys[0]!].map((key, value) => ({ key, value: `${value}` }))))
  assert.equal(await get(world, 'k00'), 0)

  await backend.call(deleteKvBatch, { query: { namespace_id, keys: ['k00', 'k01', 'nothing'] } })
  assert.deepEqual((await getBatch(keys)).entries, entries.slice(2))
})

test('a directory is listed by key, in pages, without the directories in it', async (t) => {
  const { backend, namespace_id } = await start(t)
  const list = async (directory: string): Promise<string[]> => {
    const keys: string[] = []
    let anchor: string | undefined
    do {
      const page = await backend.call(listKvEntries, {
        query: { namespace_id, directory, ...(anchor === undefined ? {} : { anchor }) },
      })
      keys.push(...page.entries.map(({ key }) => key))
      anchor = page.anchor
    } while (anchor !== undefined)
    return keys
  }
  const put = (keys: string[], value: unknown) =>
    backend.call(putKvBatch, { body: { namespace_id, entries: keys.map((key) => ({ key, value })) } })
  const many = Array.from({ length: 300 }, (_, i) => `many/${String(i).padStart(3, '0')}`)
  for (let at = 0; at < many.length; at += 60) await put(many.slice(at, at + 60), 1)
  const large = Array.from({ length: 24 }, (_, i) => `large/${String(i).padStart(2, '0')}`)
  for (let at = 0; at < large.length; at += 8) await put(large.slice(at, at + 8), 'x'.repeat(260_000))
  await put(['root', 'a/1', 'a/B', 'a/b/2', 'a/b\\/3', 'a/é'], null)

  assert.deepEqual(await list('many'), many)
  assert.deepEqual(await list('large/'), large)
  assert.deepEqual(await list(''), ['root'])
  assert.deepEqual(await list('a'), ['a/1', 'a/B', 'a/b\\/3', 'a/é'])
  assert.deepEqual(await list('a/b'), ['a/b/2'])
  assert.deepEqual(await list('nothing'), [])
})

test('a watch of an entry returns when it changes, is deleted or is created, and not before', async (t) => {
  const world = await start(t)
  const { backend, namespace_id } = world
  const watch = (watch_index: string) => backend.call(getKvEntry, { query: { namespace_id, key: 'k', watch_index } })
  const put = (value: unknown, key = 'k') => backend.call(putKvEntry, { body: { namespace_id, key, value } })

  const nothing = await backend.call(getKvEntry, { query: { namespace_id, key: 'k' } })
  assert.equal(nothing.value, null)
  let is_answered = false
  const coming = watch(nothing.watch.index)
  void coming.then(() => {
    is_answered = true
  })
  await put(0, 'another')
  await backend.call(deleteKvEntry, { query: { namespace_id, key: 'another' } })
  assert.equal(is_answered, false)
  const begin_ms = performance.now()
  await put(1)
  const first = await coming
  assert.equal(first.value, 1)
  assert.ok(performance.now() - begin_ms < 8_000, 'The wake-up came, not the look after ten seconds.')

  const [again, changed] = [await watch(nothing.watch.index), watch(first.watch.index)]
  assert.deepEqual(again, first)
  // Writing the same value again is a change.
  await put(1)
  const second = await changed
  assert.notEqual(second.watch.index, first.watch.index)

  const going = watch(second.watch.index)
  await backend.call(deleteKvEntry, { query: { namespace_id, key: 'k' } })
  const gone = await going
  assert.deepEqual({ value: gone.value, deleted: gone.deleted }, { value: null, deleted: true })
  assert.equal(gone.watch.index, nothing.watch.index)
  await put(1)
  assert.equal((await watch(second.watch.index)).deleted, undefined, 'It went and came back.')
  await refused('VALIDATION_ERROR', watch('0.0'))
  await refused('VALIDATION_ERROR', watch('nonsense!'))
})

test('a watch of a batch returns the changed and the deleted entries', async (t) => {
  const { backend, namespace_id } = await start(t)
  const keys = ['a', 'b', 'c']
  const ask = (watch_index?: string) =>
    backend.call(getKvBatch, { query: { namespace_id, keys, ...(watch_index === undefined ? {} : { watch_index }) } })
  await backend.call(putKvBatch, {
    body: { namespace_id, entries: keys.slice(0, 2).map((key) => ({ key, value: key })) },
  })
  const before = await ask()
  assert.deepEqual(before.entries, [
    { key: 'a', value: 'a' },
    { key: 'b', value: 'b' },
  ])
  const waiting = ask(before.watch.index)
  await backend.call(deleteKvEntry, { query: { namespace_id, key: 'b' } })
  const after = await waiting
  assert.deepEqual(after.entries, [{ key: 'b', value: null, deleted: true }])
  await backend.call(putKvEntry, { body: { namespace_id, key: 'c', value: 3 } })
  assert.deepEqual((await ask(after.watch.index)).entries, [{ key: 'c', value: 3 }])
  const many = Array.from({ length: 17 }, (_, i) => `k${i}`)
  const watch_index = many.map(() => '0').join('.')
  await refused('KV_BATCH_TOO_LARGE', backend.call(getKvBatch, { query: { namespace_id, keys: many, watch_index } }))
})

test('the entries of a namespace are limited exactly under concurrent writes', async (t) => {
  const world = await start(t, { MUSTER_KV_ENTRIES_MAX: '20', MUSTER_KV_MB_MAX: '1' })
  const { platform, backend, namespace_id } = world
  const put = (key: string, value: unknown) => backend.call(putKvEntry, { body: { namespace_id, key, value } })
  const outcomes = await Promise.allSettled(Array.from({ length: 60 }, () => put(randomUUID(), 1)))
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 20)
  const full = await refused('QUOTA_REACHED', put('one-more', 1))
  assert.deepEqual(full.metadata, { quota: 'kv_entries', limit: 20, used: 20, wanted: 21 })

  const { entries } = await backend.call(listKvEntries, { query: { namespace_id, directory: '' } })
  const keys = entries.map(({ key }) => key)
  const large = 'x'.repeat(250_000)
  const written = await Promise.allSettled(keys.slice(0, 8).map((key) => put(key, large)))
  assert.equal(written.filter(({ status }) => status === 'fulfilled').length, 3)
  await backend.call(deleteKvBatch, { query: { namespace_id, keys } })
  assert.deepEqual(await usageOf(platform), [{ entry_count: 0, byte_count: 0 }])
  await put('again', large)
  assert.deepEqual(await usageOf(platform), [{ entry_count: 1, byte_count: 250_007 }])
})

async function usageOf({ ctx }: Platform) {
  return ctx.db.selectFrom('kv_usage').select(['entry_count', 'byte_count']).execute()
}

test('entries are kept where the version has kv, and are deleted with their namespace', async (t) => {
  const { platform, game, backend, namespace_id } = await start(t)
  const params = { game_id: game.game_id, namespace_id }
  const { version_id } = await platform.client.call(createGameVersion, {
    params,
    body: { display_name: '2.0.0', config: {} },
  })
  const put = () => backend.call(putKvEntry, { body: { namespace_id, key: 'k', value: 1 } })
  await put()
  await platform.client.call(updateGameNamespaceVersion, { params, body: { version_id } })
  await refused('API_FORBIDDEN', put())
  await platform.client.call(updateGameNamespaceVersion, { params, body: { version_id: game.version_id } })
  await put()
  await platform.client.call(deleteGameNamespace, { params })
  await refused('NAMESPACE_NOT_FOUND', put())
  assert.deepEqual(await usageOf(platform), [])
  assert.deepEqual(await platform.ctx.db.selectFrom('kv_entries').select('key').execute(), [])
})

test('a lobby writes until its process has ended, and not after', async (t) => {
  const { platform, game, namespace_id } = await start(t)
  platform.playServers()
  const { lobby } = await game.find()
  const { lobby_id } = lobby
  const { ctx } = platform
  const server = platform.as(platform.lobbyToken({ lobby_id, namespace_id }))
  const put = () => server.call(putKvEntry, { body: { key: 'k', value: 1 } })
  const run = { lobby_id, runner_id: 'test', driver: 'process', handle: '{}', ports: '{}' }
  await ctx.db.insertInto('lobby_runs').values(run).execute()
  await ctx.db
    .updateTable('lobbies')
    .set({ stop_ts: new Date(ctx.now()) })
    .where('lobby_id', '=', lobby_id)
    .execute()
  await put()
  await ctx.db
    .updateTable('lobby_runs')
    .set({ exit_ts: new Date(ctx.now()) })
    .where('lobby_id', '=', lobby_id)
    .execute()
  await refused('TOKEN_REVOKED', put())
  const unknown = platform.as(platform.lobbyToken({ lobby_id: randomUUID(), namespace_id }))
  await refused('TOKEN_REVOKED', unknown.call(putKvEntry, { body: { key: 'k', value: 1 } }))
})

test('any page may read with a player’s token, and no page reads management', async (t) => {
  const { platform, game, backend, namespace_id } = await start(t)
  await backend.call(putKvEntry, { body: { namespace_id, key: 'k', value: 1 } })
  const { identity_token } = await game.player.call(setupIdentity, { body: {} })
  const url = `${platform.api_url}/kv/entries?key=k`
  const own = `http://${game.name_id}.cdn.localhost`
  const [allowed, foreign, preflight, elsewhere] = [
    await ask(url, { headers: { ...bearer(identity_token), origin: own } }),
    await ask(url, { headers: { ...bearer(identity_token), origin: 'https://elsewhere.example.com' } }),
    await ask(url, {
      method: 'OPTIONS',
      headers: { origin: own, 'access-control-request-method': 'GET' },
    }),
    await ask(`${platform.api_url}/cloud/games`, { headers: { origin: own } }),
  ]
  assert.equal(allowed.headers['access-control-allow-origin'], '*')
  assert.equal(JSON.parse(allowed.text).value, 1)
  assert.equal(foreign.headers['access-control-allow-origin'], '*')
  assert.equal(preflight.status, 204)
  assert.equal(preflight.headers['access-control-allow-origin'], '*')
  assert.equal(elsewhere.headers['access-control-allow-origin'], undefined)
})
