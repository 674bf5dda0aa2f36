// All data of one player: as a file, and erased.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import {
  deleteMatchmakerLobby,
  erasePlayerData,
  exportPlayerData,
  findLobby,
  getKvEntry,
  listAuditEvents,
  listErasures,
  putKvEntry,
  setupIdentity,
} from '@musterhost/contract'
import { clientKey } from '../../src/addresses/client-ip.ts'
import { subjectHashes, subjectPattern } from '../../src/cloud/player-data/subject.ts'
import { personOf } from '../http/world.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'

/** What an erasure waits for after the end of a seat. */
const SETTLED_MS = 16 * 60_000

type Player = { identity_id: string; lobby_id: string; player_id: string }
type Line = Record<string, unknown> & { section?: string }
type Scene = { platform: Platform; game: TestGame; other_game: TestGame; gone: Player; staying: Player }

async function play(platform: Platform, game: TestGame): Promise<Player> {
  const { identity_token, identity } = await game.player.call(setupIdentity, { body: {} })
  const seat = await platform.as(identity_token).call(findLobby, { body: { game_modes: ['default'] } })
  const { identity_id } = identity
  const { namespace_id } = game
  const key = `saves/${identity_id}/slot`
  await platform.client.call(putKvEntry, { body: { namespace_id, key, value: { level: 7 } } })
  return { identity_id, lobby_id: seat.lobby.lobby_id, player_id: platform.playerIdOf(seat) }
}

async function dataOf(
  platform: Platform,
  { game_id }: TestGame,
  body: { identity_id?: string; address?: string },
): Promise<Line[]> {
  const { url } = await platform.client.call(exportPlayerData, { params: { game_id }, body })
  const { pathname, search } = new URL(url)
  const response = await fetch(platform.api_url + pathname + search)
  assert.equal(response.status, 200)
  const lines = (await response.text()).trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line) as Line)
}

/** How many rows each section has. */
function countsOf(lines: readonly Line[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const line of lines)
    if (line.section === undefined) for (const name of Object.keys(line)) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

const usageOf = async ({ ctx }: Platform, { namespace_id }: TestGame) =>
  ctx.db.selectFrom('kv_usage').selectAll().where('namespace_id', '=', namespace_id).executeTakeFirstOrThrow()

test('an address is found as a whole, and no other that begins or ends with it', () => {
  const of = (address: string, text: string): boolean => {
    const subject = { game_id: '', identity_id: null, address, client_key: clientKey(address), namespace_ids: [] }
    return new RegExp(subjectPattern({ ...subject, player_ids: [], lobby_ids: [] })).test(text)
  }
  for (const text of ['from 1.2.3.4', '"1.2.3.4"', '1.2.3.4, refused']) assert.ok(of('1.2.3.4', text), text)
  for (const text of ['1.2.3.45', '11.2.3.4', '1.2.3.4.5', '1x2x3x4']) assert.ok(!of('1.2.3.4', text), text)
  assert.ok(of('2001:db8::7', 'client 2001:db8::7 left'))
  assert.ok(!of('2001:db8::7', 'client 2001:db8::77 left'))
})

test('data of one player', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const [game, other_game] = [await platform.game(), await platform.game()]
  const gone = await play(platform, game)
  const scene: Scene = { platform, game, other_game, gone, staying: await play(platform, game) }
  await play(platform, other_game)
  await until('rays and explanations', async () => {
    const { rays = 0, explanations = 0 } = countsOf(await dataOf(platform, game, { identity_id: gone.identity_id }))
    return rays > 0 && explanations >= 0
  })
  await t.test('the file has all of the player, and nothing of another', () => exportOne(scene))
  await t.test('a call that names nobody, or no address, is refused', () => refuseSubjects(scene))
  await t.test('a player with a seat is not erased', () => refuseSeated(scene))
  await t.test('an erased player is gone, and the others are as before', () => eraseOne(scene))
  await t.test('the record finds the player again, and names nobody', () => readRecord(scene))
  await t.test('an erasure that was interrupted is done by the next', () => resume(scene))
  await t.test('an address finds the seats of all its players, in this game only', () => eraseAddress(scene))
  await t.test('viewers and strangers may not', () => refuseStrangers(scene))
})

async function exportOne({ platform, game, gone, staying }: Scene): Promise<void> {
  const lines = await dataOf(platform, game, { identity_id: gone.identity_id })
  const { identity, kv, seats } = countsOf(lines)
  assert.deepEqual({ identity, kv, seats }, { identity: 1, kv: 1, seats: 1 })
  const [entry] = lines.flatMap((line) => (line.kv === undefined ? [] : [line.kv as { value: string }]))
  assert.equal(entry?.value, '{"level":7}')
  assert.match(String(lines.at(-1)?.note), /journal .* Backups/)
  const text = JSON.stringify(lines)
  for (const strange of [staying.identity_id, staying.player_id]) assert.ok(!text.includes(strange))
}

async function refuseSubjects({ platform, game: { game_id } }: Scene): Promise<void> {
  const params = { game_id }
  for (const [body, message] of [
    [{}, /Name the identity_id or the address/],
    [{ address: 'nowhere' }, /must be an IPv4 or IPv6 address/],
  ] as const) {
    for (const operation of [exportPlayerData, erasePlayerData]) {
      const refusal = await failureOf(platform.client.call(operation, { params, body }))
      assert.equal(refusal.code, 'VALIDATION_ERROR')
      assert.match(JSON.stringify(refusal.metadata), message)
    }
  }
}

async function refuseSeated({ platform, game: { game_id }, gone }: Scene): Promise<void> {
  const body = { identity_id: gone.identity_id }
  const refusal = await failureOf(platform.client.call(erasePlayerData, { params: { game_id }, body }))
  assert.equal(refusal.code, 'IN_USE')
  assert.deepEqual(refusal.metadata.held_by, [{ kind: 'lobby', id: gone.lobby_id }])
  assert.deepEqual((await platform.client.call(listErasures, { params: { game_id }, query: {} })).erasures, [])
}

async function eraseOne({ platform, game, gone, staying }: Scene): Promise<void> {
  const { game_id, namespace_id } = game
  for (const lobby_id of new Set([gone.lobby_id, staying.lobby_id]))
    await platform.client.call(deleteMatchmakerLobby, { params: { game_id, lobby_id } })
  await platform.removeReasonOf(gone.player_id)
  platform.advance(SETTLED_MS)
  const before = await dataOf(platform, game, { identity_id: staying.identity_id })
  const usage = await usageOf(platform, game)
  const body = { identity_id: gone.identity_id }
  const { erasure } = await platform.client.call(erasePlayerData, { params: { game_id }, body })
  const { identity, kv, seats } = erasure.counts
  assert.deepEqual({ identity, kv, seats }, { identity: 1, kv: 1, seats: 1 })
  assert.ok(erasure.left.some(({ what }) => what === 'backups'))
  assert.ok(erasure.end_ts !== undefined)
  const after = countsOf(await dataOf(platform, game, body))
  assert.deepEqual(after, {}, 'nothing of the player is found')
  const left = countsOf(await dataOf(platform, game, { identity_id: staying.identity_id }))
  assert.deepEqual(left, countsOf(before))
  const now = await usageOf(platform, game)
  const key = `saves/${gone.identity_id}/slot`
  assert.equal(now.entry_count, usage.entry_count - 1)
  assert.equal(now.byte_count, usage.byte_count - Buffer.byteLength(key) - Buffer.byteLength('{"level":7}'))
  const kept = `saves/${staying.identity_id}/slot`
  const entry = await platform.client.call(getKvEntry, { query: { namespace_id, key: kept } })
  assert.deepEqual(entry.value, { level: 7 })
  const again = await platform.client.call(erasePlayerData, { params: { game_id }, body })
  assert.ok(Object.values(again.erasure.counts).every((count) => count === 0))
}

async function readRecord({ platform, game, gone, staying }: Scene): Promise<void> {
  const params = { game_id: game.game_id }
  const of = async (query: { identity_id?: string }) =>
    (await platform.client.call(listErasures, { params, query })).erasures.length
  assert.equal(await of({ identity_id: gone.identity_id }), 2)
  assert.equal(await of({ identity_id: staying.identity_id }), 0)
  assert.equal(await of({}), 2)
  const rows = await platform.ctx.db.selectFrom('erasures').selectAll().execute()
  const { events } = await platform.client.call(listAuditEvents, { query: { group_id: game.group_id } })
  const recorded = events.filter(({ operation }) => operation === 'games.playerData.erasePlayerData')
  assert.equal(recorded.length, 2)
  for (const text of [JSON.stringify(rows), JSON.stringify(recorded.map(({ changes }) => changes))])
    for (const name of [gone.identity_id, gone.player_id]) assert.ok(!text.includes(name))
}

/** As after a kill: sections are erased, and the record has no end. */
async function resume({ platform, game, staying }: Scene): Promise<void> {
  const { ctx, client } = platform
  const params = { game_id: game.game_id }
  const body = { identity_id: staying.identity_id }
  await ctx.db.deleteFrom('identities').where('identity_id', '=', staying.identity_id).execute()
  const begun = { counts: '{"kv":0,"identity":1}', left_over: '[]', begin_ts: new Date(ctx.now()), end_ts: null }
  const subject_hashes = subjectHashes(ctx, game.game_id, { ...body, address: null })
  const erasure_id = randomUUID()
  await ctx.db
    .insertInto('erasures')
    .values({ erasure_id, ...params, ...begun, subject_hashes })
    .execute()
  const { erasure } = await client.call(erasePlayerData, { params, body })
  assert.equal(erasure.erasure_id, erasure_id)
  assert.deepEqual([erasure.counts.identity, erasure.counts.seats, erasure.counts.kv], [1, 1, 1])
  assert.deepEqual(countsOf(await dataOf(platform, game, body)), {})
  const { erasures } = await client.call(listErasures, { params, query: {} })
  assert.ok(erasures.every(({ end_ts }) => end_ts !== undefined))
}

async function eraseAddress({ platform, game, other_game }: Scene): Promise<void> {
  const address = '127.0.0.1'
  const first = await game.find()
  const params = { game_id: game.game_id, lobby_id: first.lobby.lobby_id }
  await platform.client.call(deleteMatchmakerLobby, { params })
  await platform.removeReasonOf(platform.playerIdOf(first))
  platform.advance(SETTLED_MS)
  assert.ok((countsOf(await dataOf(platform, game, { address })).seats ?? 0) > 0)
  const beside = countsOf(await dataOf(platform, other_game, { address }))
  const { erasure } = await platform.client.call(erasePlayerData, {
    params: { game_id: game.game_id },
    body: { address },
  })
  assert.ok((erasure.counts.seats ?? 0) > 0)
  assert.equal(countsOf(await dataOf(platform, game, { address })).seats, undefined)
  assert.deepEqual(countsOf(await dataOf(platform, other_game, { address })).seats, beside.seats)
}

async function refuseStrangers({ platform, game, other_game }: Scene): Promise<void> {
  const params = { game_id: game.game_id }
  const body = { identity_id: randomUUID() }
  const viewer = platform.as(await personOf(platform, game.group_id, 'viewer'))
  const stranger = platform.as(await personOf(platform, other_game.group_id, 'owner'))
  for (const operation of [exportPlayerData, erasePlayerData]) {
    const refusal = await failureOf(viewer.call(operation, { params, body }))
    assert.equal(refusal.code, 'GROUP_INSUFFICIENT_PERMISSIONS')
    assert.equal((await failureOf(stranger.call(operation, { params, body }))).code, 'GAME_NOT_FOUND')
  }
}
