import assert from 'node:assert/strict'
import test from 'node:test'
import {
  AUTH_USERS_MAX,
  createGameNamespace,
  createGameVersion,
  findLobby,
  getGameNamespaceById,
  getGameNamespaceVersionHistoryList,
  getGameVersionById,
  removeNamespaceCdnAuthUser,
  setNamespaceCdnAuthType,
  toggleNamespaceDomainPublicAuth,
  updateGameNamespaceVersion,
  updateNamespaceCdnAuthUser,
  validateGameVersion,
} from '@musterhost/contract'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { newGame, newSite, refused, UNKNOWN_ID, withoutMessages } from './steps.ts'

const HASH = `$2b$10$${'a'.repeat(53)}`

test('the site of a namespace', async (t) => {
  const platform = await startPlatform(t)
  const { client } = platform
  const own = await newGame(platform)
  const other = await newGame(platform)
  const { game_id } = own
  const params = { game_id, namespace_id: own.prod_id }
  const cdn = async (namespace_id = own.prod_id) =>
    (await client.call(getGameNamespaceById, { params: { game_id, namespace_id } })).namespace.config.cdn
  const setUser = (user: string, password = HASH) =>
    client.call(updateNamespaceCdnAuthUser, { params, body: { user, password } })
  const removeUser = (user: string) => client.call(removeNamespaceCdnAuthUser, { params: { ...params, user } })

  await t.test('the type of its authentication is set and read', async () => {
    for (const auth_type of ['basic', 'none', 'basic'] as const) {
      await client.call(setNamespaceCdnAuthType, { params, body: { auth_type } })
      assert.equal((await cdn()).auth_type, auth_type)
    }
    assert.equal((await cdn(own.staging_id)).auth_type, 'none')
    for (const auth_type of ['digest', '', null, 1]) {
      await refused(
        'VALIDATION_ERROR',
        client.call(setNamespaceCdnAuthType, { params, body: { auth_type: auth_type as never } }),
      )
    }
  })

  await t.test('users are added, changed and removed by name, and hashes are never told', async () => {
    for (const prefix of ['$2a$04$', '$2b$10$', '$2y$13$']) await setUser('ada', `${prefix}${'./Az09'.padEnd(53, 'x')}`)
    const odd = 'ü b/c?%&#"<>'
    await setUser(odd)
    await setUser('x'.repeat(64))
    const answer = await client.call(getGameNamespaceById, { params })
    assert.deepEqual(answer.namespace.config.cdn.auth_user_list, [
      { user: 'ada' },
      { user: 'x'.repeat(64) },
      { user: odd },
    ])
    assert.doesNotMatch(JSON.stringify(answer), /\$2/)
    await removeUser(odd)
    await removeUser('x'.repeat(64))
    await removeUser(odd)
    assert.deepEqual((await cdn()).auth_user_list, [{ user: 'ada' }])
  })

  await t.test('what is no bcrypt hash, or one that is too dear, is refused and changes nothing', async () => {
    const bad = [
      '',
      'password',
      '$2x$10$'.padEnd(60, 'a'),
      '$2b$03$'.padEnd(60, 'a'),
      '$2b$14$'.padEnd(60, 'a'),
      '$2b$31$'.padEnd(60, 'a'),
      '$2b$10$'.padEnd(59, 'a'),
      '$2b$10$'.padEnd(61, 'a'),
      `${'$2b$10$'.padEnd(59, 'a')}=`,
      `${HASH}\n`,
    ]
    for (const password of bad) await refused('CDN_INVALID_AUTH_USER_PASSWORD', setUser('eve', password))
    for (const user of ['', 'a:b', 'a\u0000', 'a\nb', 'x'.repeat(65)]) {
      await refused('VALIDATION_ERROR', setUser(user))
    }
    assert.deepEqual((await cdn()).auth_user_list, [{ user: 'ada' }])
  })

  await t.test('there are as many users as there may be, also when they come at once', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: AUTH_USERS_MAX + 4 }, (_, index) => setUser(`user-${index}`)),
    )
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, AUTH_USERS_MAX - 1)
    assert.equal((await cdn()).auth_user_list.length, AUTH_USERS_MAX)
    const error = await refused('CDN_TOO_MANY_AUTH_USERS', setUser('one-more'))
    assert.deepEqual(error.metadata, { limit: AUTH_USERS_MAX, used: AUTH_USERS_MAX })
    await setUser('ada')
    await removeUser('ada')
    await setUser('one-more')
  })

  await t.test('an origin stands for its namespace only while it may', async () => {
    const game = await platform.game()
    const namespace = { game_id: game.game_id, namespace_id: game.namespace_id }
    platform.playServers()
    const findFromPage = async () => {
      const response = await fetch(`${platform.matchmaker_url}${findLobby.path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: `http://${game.name_id}.cdn.localhost` },
        body: JSON.stringify({ game_modes: ['default'] }),
      })
      await response.arrayBuffer()
      return response.status
    }
    for (const enabled of [true, false, true]) {
      await client.call(toggleNamespaceDomainPublicAuth, { params: namespace, body: { enabled } })
      const record = await client.call(getGameNamespaceById, { params: namespace })
      assert.equal(record.namespace.config.cdn.enable_domain_public_auth, enabled)
      platform.advance(2_000)
      assert.equal(await findFromPage(), enabled ? 200 : 401)
    }
  })

  await t.test('the history says what was deployed, when and by which person, newest first', async () => {
    const history = async (query: { anchor?: string; limit?: number } = {}, at = params) =>
      (await client.call(getGameNamespaceVersionHistoryList, { params: at, query })).versions
    const first = await history()
    assert.deepEqual(
      first.map(({ version_id }) => version_id),
      [own.version_id],
    )
    const { version_id } = await client.call(createGameVersion, {
      params: { game_id },
      body: { display_name: 'next', config: {} },
    })
    await own.cloud.call(updateGameNamespaceVersion, { params, body: { version_id } })
    // Back again: a deploy of the older one.
    await client.call(updateGameNamespaceVersion, { params, body: { version_id: own.version_id } })
    const all = await history()
    assert.deepEqual(
      all.map((deploy) => [deploy.namespace_id, deploy.version_id, deploy.deployed_by]),
      [
        [own.prod_id, own.version_id, { kind: 'admin', name: 'test' }],
        [own.prod_id, version_id, { kind: 'cloud' }],
        [own.prod_id, own.version_id, { kind: 'admin', name: 'test' }],
      ],
    )
    for (const { deploy_ts } of all) assert.match(deploy_ts, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.deepEqual(await history({ limit: 2 }), all.slice(0, 2))
    assert.deepEqual(await history({ limit: 1, anchor: all[0]!.deploy_id }), all.slice(1, 2))
    assert.deepEqual(await history({ anchor: all[2]!.deploy_id }), [])
    assert.deepEqual(await history({ anchor: UNKNOWN_ID }), [])
    const created = await client.call(createGameNamespace, {
      params: { game_id },
      body: { display_name: 'Beta', name_id: 'beta', version_id },
    })
    const beta = await history({}, { game_id, namespace_id: created.namespace_id })
    assert.deepEqual(
      beta.map((deploy) => deploy.version_id),
      [version_id],
    )
    for (const query of [{ limit: 0 }, { limit: 101 }, { anchor: 'x' }, { other: 1 }]) {
      await refused('VALIDATION_ERROR', history(query as never))
    }
  })

  await t.test('the history has the message of a deploy, and when its first lobby became ready', async () => {
    const game = await platform.game()
    const at = { game_id: game.game_id, namespace_id: game.namespace_id }
    const newest = async () =>
      (await client.call(getGameNamespaceVersionHistoryList, { params: at, query: { limit: 2 } })).versions
    const deploy = (version_id: string, message?: string) =>
      client.call(updateGameNamespaceVersion, {
        params: at,
        body: message === undefined ? { version_id } : { version_id, message },
      })
    platform.playServers()
    await game.player.call(findLobby, { body: { game_modes: ['default'] } })
    // The table of lobbies is written within a second.
    const isReady = async () => (await newest())[0]!.first_ready_ts !== undefined
    await until('the first lobby in the history', isReady)
    const [played] = await newest()
    assert.equal(played!.message, undefined)
    assert.ok(Date.parse(played!.first_ready_ts!) >= Date.parse(played!.deploy_ts))

    const { config } = (await client.call(getGameVersionById, { params: { ...at, version_id: game.version_id } }))
      .version
    const body = { display_name: 'next', config }
    const { version_id } = await client.call(createGameVersion, { params: { game_id: game.game_id }, body })
    await deploy(version_id, 'Faster rounds')
    const [next, before] = await newest()
    assert.equal(next!.message, 'Faster rounds')
    assert.equal(next!.first_ready_ts, undefined, 'the lobby of the version before does not count')
    assert.equal(before!.first_ready_ts, played!.first_ready_ts)

    await game.player.call(findLobby, { body: { game_modes: ['default'] } })
    await until('a lobby of the second deploy in the history', isReady)
    const ready = (await newest())[0]!.first_ready_ts
    await deploy(version_id, 'Again')
    const [again, earlier] = await newest()
    assert.equal(again!.first_ready_ts, undefined, 'a second deploy of the version begins without a lobby')
    assert.equal(earlier!.first_ready_ts, ready)
    for (const message of ['', 'x'.repeat(501), 'one\ntwo']) {
      await refused('VALIDATION_ERROR', deploy(version_id, message))
    }
  })

  await t.test('a refused deploy is not in the history', async () => {
    const before = await client.call(getGameNamespaceVersionHistoryList, { params })
    await refused(
      'VERSION_NOT_FOUND',
      client.call(updateGameNamespaceVersion, { params, body: { version_id: other.version_id } }),
    )
    assert.deepEqual(await client.call(getGameNamespaceVersionHistoryList, { params }), before)
  })

  await t.test('a namespace of another game is not found', async () => {
    for (const namespace_id of [UNKNOWN_ID, other.prod_id]) {
      const foreign = { game_id, namespace_id }
      const calls = [
        client.call(setNamespaceCdnAuthType, { params: foreign, body: { auth_type: 'basic' } }),
        client.call(updateNamespaceCdnAuthUser, { params: foreign, body: { user: 'ada', password: HASH } }),
        client.call(removeNamespaceCdnAuthUser, { params: { ...foreign, user: 'ada' } }),
        client.call(toggleNamespaceDomainPublicAuth, { params: foreign, body: { enabled: false } }),
        client.call(getGameNamespaceVersionHistoryList, { params: foreign }),
      ]
      await Promise.all(calls.map((call) => refused('NAMESPACE_NOT_FOUND', call)))
    }
  })

  await t.test('routes are checked, each mistake by its path', async () => {
    const site_id = await newSite(platform, game_id)
    const validate = async (routes: unknown) =>
      withoutMessages(
        (
          await client.call(validateGameVersion, {
            params: { game_id },
            body: { display_name: 'routes', config: { cdn: { site_id, routes } } },
          })
        ).errors,
      )
    const route = (name: string, value: string, more: object = {}) => ({
      ...{ glob: '**', priority: 0, ...more },
      middlewares: [{ kind: { custom_headers: { headers: [{ name, value }] } } }],
    })
    const fine = [
      route('Cross-Origin-Opener-Policy', 'same-origin'),
      route('cross-origin-embedder-policy', 'require-corp', { glob: '**/*.html', priority: 100 }),
      route('content-type', 'application/wasm', { glob: 'a?*.wasm' }),
    ]
    assert.deepEqual(await validate(fine), [])
    const header = ['cdn', 'routes', '0', 'middlewares', '0', 'kind', 'custom_headers', 'headers', '0']
    const refusedNames = [
      ...[
        'Content-Length',
        'transfer-encoding',
        'CONNECTION',
        'keep-alive',
        'upgrade',
        'trailer',
        'Proxy-Authenticate',
      ],
      ...['content-encoding', 'content-range', 'etag', 'vary', 'set-cookie', 'www-authenticate', 'location'],
      ...['X-Content-Type-Options', 'Strict-Transport-Security', 'x-forwarded-host', 'alt-svc', 'Sec-Anything'],
    ]
    for (const name of refusedNames) {
      assert.deepEqual(await validate([route(name, 'x')]), [{ path: [...header, 'name'], reason: 'forbidden' }], name)
    }
    for (const name of ['a b', 'a:', 'ä', 'a\r\nb', '"a"']) {
      assert.deepEqual(await validate([route(name, 'x')]), [{ path: [...header, 'name'], reason: 'invalid' }], name)
    }
    for (const value of ['', ' x', 'x ', 'a\r\nx-evil: 1', 'a\nb', 'a\u0001', 'ä', '\u007f']) {
      assert.deepEqual(
        await validate([route('x-a', value)]),
        [{ path: [...header, 'value'], reason: 'invalid' }],
        value,
      )
    }
    for (const type of ['text/html; charset=utf-7', 'html', 'Text/Html']) {
      assert.deepEqual(await validate([route('content-type', type)]), [
        { path: [...header, 'value'], reason: 'invalid' },
      ])
    }
    const one = (more: object) => [route('x-a', 'b', more)]
    const at = (...path: string[]) => ['cdn', 'routes', ...path]
    assert.deepEqual(await validate(one({ glob: '' })), [{ path: at('0', 'glob'), reason: 'too_short' }])
    assert.deepEqual(await validate(one({ glob: 'x'.repeat(257) })), [{ path: at('0', 'glob'), reason: 'too_long' }])
    for (const glob of ['/a', 'a{b,c}', 'a[b]', '!a', 'a\\b']) {
      assert.deepEqual(await validate(one({ glob })), [{ path: at('0', 'glob'), reason: 'invalid' }], glob)
    }
    assert.deepEqual(await validate(one({ priority: 101 })), [{ path: at('0', 'priority'), reason: 'too_high' }])
    assert.deepEqual(await validate(one({ priority: -1 })), [{ path: at('0', 'priority'), reason: 'too_low' }])
    assert.deepEqual(await validate([...one({}), ...one({})]), [{ path: at('1', 'glob'), reason: 'not_unique' }])
    const many = (count: number) => Array.from({ length: count }, (_, index) => route('x', 'y', { glob: `${index}` }))
    assert.deepEqual(await validate(many(32)), [])
    assert.deepEqual(await validate(many(33)), [{ path: at(), reason: 'too_many' }])
    const headers = Array.from({ length: 9 }, (_, index) => ({ name: `x-${index}`, value: 'x'.repeat(1024) }))
    const fat = [{ glob: '**', priority: 0, middlewares: [{ kind: { custom_headers: { headers } } }] }]
    assert.deepEqual(await validate(fat), [{ path: at(), reason: 'too_long' }])
    assert.deepEqual(await validate([route('x'.repeat(513), 'x')]), [{ path: [...header, 'name'], reason: 'too_long' }])
  })
})
