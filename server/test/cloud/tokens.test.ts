import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'
import {
  completeUpload,
  createCloudToken,
  createGameBuild,
  createGameNamespaceTokenPublic,
  getGames,
  listGameCloudTokens,
  listGameNamespaceTokensPublic,
  listGroups,
  listLobbies,
  revokeGameCloudToken,
  revokeGameNamespaceTokenPublic,
  revokeToken,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { adminToken } from '../../src/supervisor/folders.ts'
import { rotateRing, SPREAD_MS } from '../../src/tokens/ring.ts'
import { MUSTER } from '../run/built-programs.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { arrives, buildBody, newGame, refused, tarGz, UNKNOWN_ID } from './steps.ts'

const LIVE_TOKENS = 1_000
const AT_ONCE = 50
const GRACE_MS = 60 * 60_000
/** What the interface promises of a revocation, in force everywhere. */
const IN_FORCE_MS_MAX = 1_000

test('tokens that were given out', async (t) => {
  const platform = await startPlatform(t)
  const { client, data_dir } = platform
  const twin = await startPlatform(t, { data_dir, database_url: platform.ctx.config.database_url!, roles: 'api' })
  const game = await newGame(platform)
  const other = await newGame(platform)
  const params = { game_id: game.game_id }
  const namespace = { ...params, namespace_id: game.prod_id }

  await t.test('are listed by what they are for, without themselves', async () => {
    const { tokens } = await game.cloud.call(listGameCloudTokens, { params })
    assert.equal(tokens.length, 1)
    const { token_id, create_ts, expire_ts } =
      platform.ctx.keys.verify(game.cloud_token, platform.ctx.now()) && tokens[0]!
    assert.equal(token_id, platform.ctx.keys.verify(game.cloud_token, platform.ctx.now()).token_id)
    assert.equal(Date.parse(expire_ts!) - Date.parse(create_ts), 365 * 24 * 60 * 60_000)
    assert.deepEqual((await client.call(listGameNamespaceTokensPublic, { params: namespace })).tokens, [])
    const staging = { ...params, namespace_id: game.staging_id }
    await client.call(createGameNamespaceTokenPublic, { params: staging })
    assert.equal((await client.call(listGameNamespaceTokensPublic, { params: staging })).tokens.length, 1)
    assert.deepEqual((await client.call(listGameNamespaceTokensPublic, { params: namespace })).tokens, [])
    const foreign = { game_id: other.game_id, namespace_id: game.prod_id }
    await refused('NAMESPACE_NOT_FOUND', client.call(listGameNamespaceTokensPublic, { params: foreign }))
  })

  await t.test('a revoked cloud token is refused by every process within a second, and others are not', async () => {
    const { token } = await client.call(createCloudToken, { params })
    const { token_id } = platform.ctx.keys.verify(token, platform.ctx.now())
    await twin.as(token).call(getGames, {})
    const began = performance.now()
    await client.call(revokeGameCloudToken, { params: { ...params, token_id } })
    await refused('TOKEN_REVOKED', platform.as(token).call(getGames, {}))
    await until('the other process refuses the token', () => twin.ctx.revoked.has(token_id))
    assert.ok(performance.now() - began < IN_FORCE_MS_MAX)
    await refused('TOKEN_REVOKED', twin.as(token).call(getGames, {}))
    await twin.as(game.cloud_token).call(getGames, {})
    await client.call(revokeGameCloudToken, { params: { ...params, token_id } })
    const { tokens } = await client.call(listGameCloudTokens, { params })
    assert.deepEqual(
      tokens.map((item) => [item.token_id === token_id, item.revoke_ts !== undefined]),
      [
        [true, true],
        [false, false],
      ],
    )
  })

  await t.test('a revocation whose wake-up was lost is still read', async () => {
    const { token } = await client.call(createCloudToken, { params })
    const { token_id } = platform.ctx.keys.verify(token, platform.ctx.now())
    await platform.ctx.db.insertInto('revoked_tokens').values({ token_id }).execute()
    await until('both read it', () => [platform, twin].every(({ ctx }) => ctx.revoked.has(token_id)))
    await refused('TOKEN_REVOKED', platform.as(token).call(getGames, {}))
  })

  await t.test('a revoked public token finds nothing any more', async () => {
    const { token } = await client.call(createGameNamespaceTokenPublic, { params: namespace })
    const { tokens } = await client.call(listGameNamespaceTokensPublic, { params: namespace })
    await platform.as(token).call(listLobbies, {})
    const revoke = { params: { ...namespace, token_id: tokens[0]!.token_id } }
    await refused(
      'TOKEN_NOT_FOUND',
      client.call(revokeGameNamespaceTokenPublic, { params: { ...revoke.params, namespace_id: game.staging_id } }),
    )
    await game.cloud.call(revokeGameNamespaceTokenPublic, revoke)
    await refused('TOKEN_REVOKED', platform.as(token).call(listLobbies, {}))
  })

  await t.test('show what each is for, who created it, and when a cloud token was last used', async () => {
    const { token } = await client.call(createCloudToken, { params, body: { name: 'ci of the game' } })
    const { token_id } = platform.ctx.keys.verify(token, platform.ctx.now())
    const listed = async () => {
      const { tokens } = await client.call(listGameCloudTokens, { params })
      return tokens.find((one) => one.token_id === token_id)!
    }
    const { name, created_by, use_ts } = await listed()
    assert.deepEqual([name, created_by, use_ts], ['ci of the game', { kind: 'admin', name: 'test' }, undefined])
    const ci = createClient({ url: platform.api_url, token })
    const before_ms = platform.ctx.now()
    const { token: second } = await ci.call(createCloudToken, { params })
    const used = await until('the use to be written', async () => (await listed()).use_ts)
    assert.ok(Date.parse(used) >= before_ms)
    const { tokens } = await ci.call(listGameCloudTokens, { params })
    const made = tokens.find((one) => one.token_id === platform.ctx.keys.verify(second, platform.ctx.now()).token_id)
    assert.deepEqual([made?.name, made?.created_by], [undefined, { kind: 'cloud' }])
    await ci.call(revokeGameCloudToken, { params: { ...params, token_id: made!.token_id } })
  })

  await t.test('only what is there is revoked', async () => {
    await refused('TOKEN_NOT_FOUND', client.call(revokeGameCloudToken, { params: { ...params, token_id: UNKNOWN_ID } }))
    const { token_id } = platform.ctx.keys.verify(other.cloud_token, platform.ctx.now())
    await refused('TOKEN_NOT_FOUND', game.cloud.call(revokeGameCloudToken, { params: { ...params, token_id } }))
    await other.cloud.call(getGames, {})
  })

  await t.test('the admin token is rotated by a command, and the old one is dead', async () => {
    const { ctx } = platform
    const { token, file } = adminToken(ctx.config, ctx.keys, ctx.now())
    await platform.as(token).call(listGroups, {})
    const env = {
      PATH: process.env.PATH,
      MUSTER_DATA: data_dir,
      MUSTER_API_PORT: new URL(platform.api_url).port,
    }
    const printed = await promisify(execFile)(process.execPath, [MUSTER, 'admin-token'], { env })
    assert.equal(printed.stdout.trim(), token)
    await promisify(execFile)(process.execPath, [MUSTER, 'admin-token', '--rotate'], { env })
    const fresh = readFileSync(file, 'utf8').trim()
    assert.notEqual(fresh, token)
    await platform.as(fresh).call(listGroups, {})
    await refused('TOKEN_REVOKED', platform.as(token).call(listGroups, {}))
    await client.call(revokeToken, { params: { token_id: ctx.keys.verify(fresh, ctx.now()).token_id } })
    await refused('TOKEN_REVOKED', platform.as(fresh).call(listGroups, {}))
  })
})

test(`a rotation of the keys with ${LIVE_TOKENS} live tokens fails nobody`, async (t) => {
  const platform = await startPlatform(t)
  const { data_dir, ctx } = platform
  const twin = await startPlatform(t, { data_dir, database_url: ctx.config.database_url!, roles: 'api' })
  const both = [platform, twin]
  const game = await newGame(platform)
  const subject = { kind: 'cloud', game_id: game.game_id } as const
  const issue = (keys = ctx.keys): string => keys.issue(subject, { now_ms: ctx.now(), lifetime_ms: null })
  const kidOf = (token: string): string => token.split('.')[1]!
  const tokens = Array.from({ length: LIVE_TOKENS }, () => issue())
  const useAll = async (): Promise<void> => {
    for (let from = 0; from < tokens.length; from += AT_ONCE) {
      const some = tokens.slice(from, from + AT_ONCE)
      await Promise.all(some.map((token, index) => both[index % 2]!.as(token).call(getGames, {})))
    }
  }
  const archive = await tarGz({ 'server.js': 'console.log(1)' })
  const build = await platform.client.call(createGameBuild, {
    params: { game_id: game.game_id },
    body: buildBody(archive),
  })
  await useAll()

  const old = kidOf(issue())
  mkdirSync(join(data_dir, 'keys'), { recursive: true })
  const rotate_ms = ctx.now()
  await rotateRing(join(data_dir, 'keys'), { now_ms: rotate_ms, grace_ms: GRACE_MS })
  await useAll()
  // A process that has read the new ring does not sign with it before all others have.
  await until('the ring is taken up', () => kidOf(issueLater(platform)) !== old && kidOf(issueLater(twin)) !== old)
  assert.equal(kidOf(keyedAt(rotate_ms + SPREAD_MS - 1)), old)
  assert.notEqual(kidOf(keyedAt(rotate_ms + SPREAD_MS)), old)
  for (const { advance } of both) advance(SPREAD_MS)
  assert.notEqual(kidOf(issue()), old)
  assert.equal(kidOf(issue(twin.ctx.keys)), kidOf(issue()))
  for (const token of [issue(), issue(twin.ctx.keys)]) {
    for (const each of both) await each.as(token).call(getGames, {})
  }
  await useAll()
  await arrives(platform, build.image_presigned_request!, archive)
  await platform.client.call(completeUpload, { params: { upload_id: build.upload_id } })

  for (const { advance } of both) advance(GRACE_MS + SPREAD_MS)
  for (const each of both) {
    await refused('TOKEN_INVALID', each.as(tokens[0]!).call(getGames, {}))
    await each.as(issue()).call(getGames, {})
  }

  function keyedAt(now_ms: number, keys = ctx.keys): string {
    return keys.issue(subject, { now_ms, lifetime_ms: null })
  }

  /** A token as it will be signed when the new keys' time has come. */
  function issueLater({ ctx: { keys, now } }: typeof platform): string {
    return keyedAt(now() + SPREAD_MS, keys)
  }
})
