import assert from 'node:assert/strict'
import { once } from 'node:events'
import test from 'node:test'
import {
  createGameNamespace,
  createGameNamespaceTokenPublic,
  createGameVersion,
  getGameNamespaceById,
  updateGameNamespaceMatchmakerConfig,
  updateGameNamespaceVersion,
  validateGameNamespace,
  validateGameNamespaceMatchmakerConfig,
} from '@musterhost/contract'
import pg from 'pg'
import { startPlatform } from '../support/platform.ts'
import { detailsOf, newGame, refused, UNKNOWN_ID, withoutMessages } from './steps.ts'

const LIMITS = [
  'lobby_count_max',
  'max_players_per_client',
  'max_players_per_client_vpn',
  'max_players_per_client_proxy',
  'max_players_per_client_tor',
  'max_players_per_client_hosting',
] as const
const U32_MAX = 4_294_967_295

test('namespaces', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { client } = platform
  const own = await newGame(platform)
  const other = await newGame(platform)
  const { game_id } = own
  const params = { game_id, namespace_id: own.prod_id }
  const limitsOf = async (namespace_id: string) =>
    (await client.call(getGameNamespaceById, { params: { game_id, namespace_id } })).namespace.config.matchmaker

  await t.test('the full record has every member of the interface, and nothing else', async () => {
    const { namespace } = await client.call(getGameNamespaceById, { params })
    const { create_ts, ...rest } = namespace
    assert.match(create_ts, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.deepEqual(rest, {
      namespace_id: own.prod_id,
      display_name: 'Production',
      name_id: 'prod',
      version_id: own.version_id,
      config: {
        cdn: { enable_domain_public_auth: true, domains: [], auth_type: 'none', auth_user_list: [] },
        identity: {},
        kv: {},
        matchmaker: {
          lobby_count_max: 128,
          max_players_per_client: 8,
          max_players_per_client_vpn: 4,
          max_players_per_client_proxy: 2,
          max_players_per_client_tor: 2,
          max_players_per_client_hosting: 2,
        },
      },
    })
  })

  await t.test('a namespace is created on a version of its game', async () => {
    const body = { display_name: 'Beta', name_id: 'beta', version_id: own.version_id }
    const { namespace_id } = await client.call(createGameNamespace, { params: { game_id }, body })
    const { namespace } = await client.call(getGameNamespaceById, { params: { game_id, namespace_id } })
    assert.equal(namespace.display_name, 'Beta')
    const create = (change: object) =>
      client.call(createGameNamespace, { params: { game_id }, body: { ...body, name_id: 'gamma', ...change } })
    assert.deepEqual(detailsOf(await refused('NAME_TAKEN', create({ name_id: 'beta' }))), [
      { path: ['name_id'], reason: 'not_unique' },
    ])
    await refused('VERSION_NOT_FOUND', create({ version_id: UNKNOWN_ID }))
    await refused('VERSION_NOT_FOUND', create({ version_id: other.version_id }))
    await refused('VALIDATION_ERROR', create({ version_id: 'x' }))
    await refused('VALIDATION_ERROR', create({ name_id: undefined }))
    await refused('VALIDATION_ERROR', create({ display_name: ' ' }))
    // Another game may use the same name.
    const elsewhere = { ...body, version_id: other.version_id }
    await client.call(createGameNamespace, { params: { game_id: other.game_id }, body: elsewhere })
  })

  await t.test('validate says what create would refuse', async () => {
    const validate = async (display_name: string, name_id: string) =>
      withoutMessages(
        (await client.call(validateGameNamespace, { params: { game_id }, body: { display_name, name_id } })).errors,
      )
    assert.deepEqual(await validate('Fine', 'fine'), [])
    assert.deepEqual(await validate('x'.repeat(128), 'fine'), [])
    assert.deepEqual(await validate('x'.repeat(129), 'prod'), [
      { path: ['display_name'], reason: 'too_long' },
      { path: ['name_id'], reason: 'not_unique' },
    ])
    assert.deepEqual(await validate('', 'No'), [
      { path: ['display_name'], reason: 'too_short' },
      { path: ['name_id'], reason: 'invalid' },
    ])
  })

  await t.test('each limit is set on its own, from 0 to the largest unsigned 32 bit number', async () => {
    for (const name of LIMITS) {
      for (const value of [0, 1, U32_MAX]) {
        const before = await limitsOf(own.prod_id)
        await client.call(updateGameNamespaceMatchmakerConfig, { params, body: { [name]: value } })
        assert.deepEqual(await limitsOf(own.prod_id), { ...before, [name]: value })
      }
    }
    const all = Object.fromEntries(LIMITS.map((name, index) => [name, index]))
    await client.call(updateGameNamespaceMatchmakerConfig, { params, body: all })
    assert.deepEqual(await limitsOf(own.prod_id), all)
    assert.equal((await limitsOf(own.staging_id)).lobby_count_max, 128)
  })

  await t.test('numbers that are not unsigned 32 bit are refused and change nothing', async () => {
    const before = await limitsOf(own.prod_id)
    const validate = async (body: Record<string, unknown>) => {
      const { errors } = await client.call(validateGameNamespaceMatchmakerConfig, { params, body })
      return withoutMessages(errors)
    }
    const cases: [unknown, string][] = [
      [U32_MAX + 1, 'too_high'],
      [-1, 'too_low'],
      [1.5, 'wrong_type'],
      ['5', 'wrong_type'],
      [true, 'wrong_type'],
      [[1], 'wrong_type'],
      [1e300, 'too_high'],
    ]
    for (const name of LIMITS) {
      for (const [value, reason] of cases) {
        // One that is fine beside it: all or nothing.
        const body = { max_players_per_client: 3, [name]: value }
        const error = await refused(
          'VALIDATION_ERROR',
          client.call(updateGameNamespaceMatchmakerConfig, { params, body }),
        )
        assert.deepEqual(detailsOf(error), [{ path: [name], reason }], `${name} ${value}`)
        // What is no exact number at all, not even the validation takes.
        if (value !== 1e300) assert.deepEqual(await validate(body), detailsOf(error))
      }
    }
    const call = (body: object) => client.call(updateGameNamespaceMatchmakerConfig, { params, body })
    assert.deepEqual(detailsOf(await refused('VALIDATION_ERROR', call({ max_players: -1 }))), [
      { path: ['max_players'], reason: 'too_low' },
    ])
    assert.deepEqual(detailsOf(await refused('VALIDATION_ERROR', call({ players: 3 }))), [
      { path: ['players'], reason: 'unknown' },
    ])
    assert.deepEqual(await validate({}), detailsOf(await refused('VALIDATION_ERROR', call({}))))
    assert.deepEqual(await validate({ lobby_count_max: 0 }), [])
    assert.deepEqual(await limitsOf(own.prod_id), before)
  })

  await t.test('max_players sets the five limits of a client, and leaves those that are named beside it', async () => {
    const set = (body: object) => client.call(updateGameNamespaceMatchmakerConfig, { params, body })
    const { lobby_count_max } = await limitsOf(own.prod_id)
    await set({ max_players: 5 })
    const all_five = {
      max_players_per_client: 5,
      max_players_per_client_vpn: 5,
      max_players_per_client_proxy: 5,
      max_players_per_client_tor: 5,
      max_players_per_client_hosting: 5,
    }
    assert.deepEqual(await limitsOf(own.prod_id), { lobby_count_max, ...all_five })
    // As known clients send it, and with one that is an exception.
    await set({ lobby_count_max: 7, max_players: 6, max_players_per_client_tor: 0 })
    const six = Object.fromEntries(Object.keys(all_five).map((name) => [name, 6]))
    assert.deepEqual(await limitsOf(own.prod_id), { lobby_count_max: 7, ...six, max_players_per_client_tor: 0 })
    const { errors } = await client.call(validateGameNamespaceMatchmakerConfig, {
      params,
      body: { lobby_count_max: 1, max_players: 4_294_967_296 },
    })
    assert.deepEqual(withoutMessages(errors), [{ path: ['max_players'], reason: 'too_high' }])
  })

  await t.test('a version of the game is deployed, and those who keep copies are notified', async (t) => {
    const { version_id } = await client.call(createGameVersion, {
      params: { game_id },
      body: { display_name: 'next', config: {} },
    })
    const listener = new pg.Client({ connectionString: platform.ctx.config.database_url! })
    await listener.connect()
    t.after(() => listener.end())
    await listener.query('listen namespaces')
    const told = once(listener, 'notification', { signal: AbortSignal.timeout(5_000) })
    await client.call(updateGameNamespaceVersion, { params, body: { version_id } })
    const [notification] = await told
    assert.equal(notification.payload, own.prod_id)
    const toldAgain = once(listener, 'notification', { signal: AbortSignal.timeout(5_000) })
    await client.call(updateGameNamespaceMatchmakerConfig, { params, body: { lobby_count_max: 9 } })
    assert.equal((await toldAgain)[0].payload, own.prod_id)

    assert.equal((await client.call(getGameNamespaceById, { params })).namespace.version_id, version_id)
    for (const unknown of [UNKNOWN_ID, other.version_id]) {
      await refused(
        'VERSION_NOT_FOUND',
        client.call(updateGameNamespaceVersion, { params, body: { version_id: unknown } }),
      )
    }
    await refused('VALIDATION_ERROR', client.call(updateGameNamespaceVersion, { params, body: {} as never }))
    assert.equal((await client.call(getGameNamespaceById, { params })).namespace.version_id, version_id)
  })

  await t.test('a public token speaks for its namespace', async () => {
    const { token } = await client.call(createGameNamespaceTokenPublic, { params })
    assert.match(token, /^pub_prod\.[^.]+\.[^.]+\.[^.]+$/)
    const claims = platform.ctx.keys.verify(token, platform.ctx.now())
    assert.equal(claims.kind === 'public' && claims.namespace_id, own.prod_id)
  })

  await t.test('a namespace of another game is not found, and stays as it is', async () => {
    const before = await client.call(getGameNamespaceById, {
      params: { game_id: other.game_id, namespace_id: other.prod_id },
    })
    for (const namespace_id of [UNKNOWN_ID, other.prod_id]) {
      const foreign = { game_id, namespace_id }
      const version = { version_id: own.version_id }
      await refused('NAMESPACE_NOT_FOUND', client.call(getGameNamespaceById, { params: foreign }))
      await refused('NAMESPACE_NOT_FOUND', client.call(createGameNamespaceTokenPublic, { params: foreign }))
      await refused('NAMESPACE_NOT_FOUND', client.call(updateGameNamespaceVersion, { params: foreign, body: version }))
      await refused(
        'NAMESPACE_NOT_FOUND',
        client.call(updateGameNamespaceMatchmakerConfig, { params: foreign, body: { lobby_count_max: 0 } }),
      )
    }
    const after = await client.call(getGameNamespaceById, {
      params: { game_id: other.game_id, namespace_id: other.prod_id },
    })
    assert.deepEqual(after, before)
  })
})
