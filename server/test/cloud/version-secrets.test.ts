import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { createGameVersion, getGameVersionById, validateGameVersion } from '@musterhost/contract'
import { sweep } from '../../src/cloud/sweep/sweep.ts'
import { rotateSeals, SPREAD_MS } from '../../src/tokens/ring.ts'
import { openConfig } from '../../src/tokens/version-secrets.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { dump, filesIn } from './planted.ts'
import { detailsOf, refused, withoutMessages } from './steps.ts'

const PLANTED = ['planted-hcaptcha-secret', 'planted-turnstile-secret', 'planted-header', 'planted-other'] as const
const CAPTCHA = {
  requests_before_reverify: 10,
  verification_ttl: 240_000,
  hcaptcha: { site_key: 'a', secret_key: PLANTED[0] },
  turnstile: { site_key: 'b', secret_key: PLANTED[1] },
}

const URL = 'https://gate.example.org/'
const MODES = {
  default: {
    actions: {
      find: { enabled: true, verification_config: { url: URL, headers: { 'x-gate': PLANTED[2] } } },
      join: { enabled: true, verification: { url: URL, headers: { 'x.other': PLANTED[3] } } },
    },
  },
}

function storedOf(platform: Platform, game: TestGame) {
  return platform.ctx.db
    .selectFrom('versions')
    .where('version_id', '=', game.version_id)
    .select(['version_id', 'config', 'secrets'])
    .executeTakeFirstOrThrow()
}

test('secrets of a version are in no answer, no row and no file', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ matchmaker: { game_modes: MODES, captcha: CAPTCHA } })
  const params = { game_id: game.game_id, version_id: game.version_id }
  const { version } = await platform.client.call(getGameVersionById, { params })
  assert.deepEqual(version.config.matchmaker?.captcha, {
    ...CAPTCHA,
    hcaptcha: { site_key: 'a', secret_key: '' },
    turnstile: { site_key: 'b', secret_key: '' },
  })
  // Kept and answered under the one name that the interface has.
  assert.deepEqual(version.config.matchmaker?.game_modes.default?.actions, {
    find: { enabled: true, verification_config: { url: URL, headers: { 'x-gate': '' } } },
    join: { enabled: true, verification_config: { url: URL, headers: { 'x.other': '' } } },
  })
  const rows = await dump(platform)
  const files = await filesIn(platform.data_dir)
  assert.ok(rows.includes(game.version_id), 'there are rows to look through')
  assert.ok(files.includes('aes-256-gcm'), 'there are files to look through')
  for (const secret of PLANTED) {
    for (const form of [secret, Buffer.from(secret).toString('hex')]) {
      assert.ok(!rows.includes(form), 'the database has a secret')
    }
    assert.ok(!files.includes(secret), 'the data folder has a secret')
  }
  const opened = openConfig(platform.ctx.seals, await storedOf(platform, game)).matchmaker
  assert.deepEqual(opened?.captcha, CAPTCHA)
  assert.equal(opened?.game_modes.default?.actions?.find?.verification_config?.headers?.['x-gate'], PLANTED[2])
  assert.equal(opened?.game_modes.default?.actions?.join?.verification_config?.headers?.['x.other'], PLANTED[3])
})

test('a config that was read is not taken for one with secrets', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ matchmaker: { game_modes: MODES, captcha: CAPTCHA } })
  const params = { game_id: game.game_id, version_id: game.version_id }
  const { version } = await platform.client.call(getGameVersionById, { params })
  const body = { display_name: '2', config: version.config }
  const actions = ['matchmaker', 'game_modes', 'default', 'actions']
  const expected = [
    ['matchmaker', 'captcha', 'hcaptcha', 'secret_key'],
    ['matchmaker', 'captcha', 'turnstile', 'secret_key'],
    [...actions, 'find', 'verification_config', 'headers', 'x-gate'],
    [...actions, 'join', 'verification_config', 'headers', 'x.other'],
  ].map((path) => ({ path, reason: 'required' }))
  const error = await refused('VALIDATION_ERROR', platform.client.call(createGameVersion, { params, body }))
  assert.deepEqual(detailsOf(error), expected)
  const { errors } = await platform.client.call(validateGameVersion, { params, body })
  assert.deepEqual(withoutMessages(errors), expected)
})

test('an endpoint has 32 headers at most', async (t) => {
  const platform = await startPlatform(t)
  const { game_id } = await platform.game()
  for (const count of [32, 33, 1_000]) {
    const headers = Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-${at}`, 'x']))
    const actions = { find: { enabled: true, verification_config: { url: URL, headers } } }
    const config = { matchmaker: { game_modes: { default: { actions } } } }
    const body = { display_name: '2', config }
    const { errors } = await platform.client.call(validateGameVersion, { params: { game_id }, body })
    const path = ['matchmaker', 'game_modes', 'default', 'actions', 'find', 'verification_config', 'headers']
    const about = withoutMessages(errors).filter((error) => error.path.includes('headers'))
    assert.deepEqual(about, count > 32 ? [{ path, reason: 'too_many' }] : [], `${count}`)
  }
})

test('after a rotation secrets are readable at every moment, and are closed with the new key by the next sweep', async (t) => {
  const platform = await startPlatform(t)
  const { ctx } = platform
  const game = await platform.game({ matchmaker: { game_modes: MODES, captcha: CAPTCHA } })
  const before = await storedOf(platform, game)
  await rotateSeals(join(platform.data_dir, 'keys'), { now_ms: ctx.now() })
  await ctx.seals.refresh()
  assert.deepEqual(openConfig(ctx.seals, before).matchmaker?.captcha, CAPTCHA)
  await sweep(ctx)
  assert.equal((await storedOf(platform, game)).secrets, before.secrets, 'not before every process knows the key')
  platform.advance(SPREAD_MS)
  await sweep(ctx)
  const after = await storedOf(platform, game)
  assert.notEqual(after.secrets?.split('.')[1], before.secrets?.split('.')[1])
  assert.deepEqual(openConfig(ctx.seals, after).matchmaker?.captcha, CAPTCHA)
  await sweep(ctx)
  assert.equal((await storedOf(platform, game)).secrets, after.secrets, 'once is enough')
})
