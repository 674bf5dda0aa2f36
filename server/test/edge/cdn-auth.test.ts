import assert from 'node:assert'
import type { RequestOptions } from 'node:http'
import { test } from 'node:test'
import { hash } from '@node-rs/bcrypt'
import { AUTH_ATTEMPTS_BURST, AUTH_REMEMBERED_MS, SITE_HOST_AGE_MS_MAX } from '../../src/edge/limits.ts'
import { until } from '../support/until.ts'
import { get } from './get.ts'
import { startTestEdge } from './platform.ts'

const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
})

test('a site behind a password', async (t) => {
  const edge = await startTestEdge(t)
  const { db, listener } = edge.ctx
  const game = await edge.game('puddle')
  const { namespace_id } = game
  const set = async (user: string, password: string, cost = 4) => {
    const password_hash = await hash(password, { cost })
    await db
      .insertInto('namespace_auth_users')
      .values({ namespace_id, user, password_hash })
      .onConflict((conflict) => conflict.columns(['namespace_id', 'user']).doUpdateSet({ password_hash }))
      .execute()
  }
  const told = async () => {
    await listener.notify('namespaces', namespace_id)
    edge.advance(SITE_HOST_AGE_MS_MAX)
  }
  const cache = [{ kind: { custom_headers: { headers: [{ name: 'cache-control', value: 'public, max-age=60' }] } } }]
  const site = await game.site({ 'index.html': 'secret', 'main.js': 'secret', 'docs/index.html': 'secret' })
  await game.deploy(site, [{ glob: '**', priority: 1, middlewares: cache }])
  await set('ada', 'pässword:1')
  assert.equal((await get(edge, '/')).status, 200, 'users alone do not close a site')
  await db.updateTable('namespaces').set({ cdn_auth_type: 'basic' }).where('namespace_id', '=', namespace_id).execute()
  await told()
  await until('the site requires a password', async () => (await get(edge, '/')).status === 401)
  /** Another client for each test, so that their attempts are counted apart. */
  let sources = 0
  const newSource = () => `127.0.1.${++sources}`

  await t.test('only a correct name and password open the site, and shared caches keep none of it', async () => {
    const localAddress = newSource()
    for (const [path, expected] of [
      ['/', 'private, no-cache, no-store'],
      ['/index.html', 'private, no-cache, no-store'],
      ['/main.js', 'private, no-cache'],
    ] as const) {
      const response = await get(edge, path, { localAddress, headers: basic('ada', 'pässword:1') })
      assert.deepEqual([response.status, response.body.toString()], [200, 'secret'])
      assert.equal(response.headers['cache-control'], expected)
      assert.match(response.headers.vary ?? '', /Authorization/)
    }
    const unknown = await get(edge, '/nothing', { localAddress, headers: basic('ada', 'pässword:1') })
    assert.deepEqual([unknown.status, unknown.headers['cache-control']], [404, 'no-store'])
    assert.equal((await get(edge, '/nothing', { localAddress })).status, 401)
    assert.equal((await get(edge, '/docs', { localAddress })).status, 401)
    const folder = await get(edge, '/docs', { localAddress, headers: basic('ada', 'pässword:1') })
    assert.deepEqual(
      ['location', 'cache-control', 'vary'].map((name) => folder.headers[name]),
      ['/docs/', 'private, no-cache, no-store', 'Authorization'],
    )
    const wellKnown = await get(edge, '/.well-known/muster.json', { localAddress, headers: basic('ada', 'pässword:1') })
    assert.equal(wellKnown.status, 200)
  })

  await t.test('every wrong login gets the same response', async () => {
    const shape = async (headers: Record<string, string>, path = '/') => {
      const response = await get(edge, path, { headers, localAddress: newSource() })
      const { 'x-ray-id': ray_id, date: _, ...rest } = response.headers
      return { status: response.status, rest, body: response.body.toString().replace(String(ray_id), 'RAY') }
    }
    const none = await shape({})
    assert.equal(none.status, 401)
    assert.equal(none.rest['www-authenticate'], 'Basic realm="Muster site", charset="UTF-8"')
    assert.equal(none.rest['cache-control'], 'no-store')
    const wrong: Record<string, string>[] = [
      basic('ada', 'wrong'),
      basic('ada', ''),
      basic('', 'pässword:1'),
      basic('Ada', 'pässword:1'),
      basic('eve', 'pässword:1'),
      basic('__proto__', 'x'),
      basic('ada', 'pässword:1\0'),
      basic('ada"\r\nx-evil: 1', 'x'),
      basic('ada', 'x'.repeat(10_000)),
      { authorization: 'Basic' },
      { authorization: 'Basic !!!!' },
      { authorization: `Basic ${Buffer.from('no colon').toString('base64')}` },
      { authorization: `Basic ${Buffer.from([0xff, 0x3a, 0xff]).toString('base64')}` },
      { authorization: 'Bearer abc' },
    ]
    for (const headers of wrong) assert.deepEqual(await shape(headers), none, JSON.stringify(headers).slice(0, 80))
    assert.deepEqual(await shape({}, '/no-such-file'), none, 'which files there are is not told')
  })

  await t.test('a client without a login gets no file that others got, in any form of request', async () => {
    const player = { localAddress: newSource(), headers: basic('ada', 'pässword:1') }
    const { etag = '' } = (await get(edge, '/main.js', player)).headers
    const forms: RequestOptions[] = [
      { headers: { 'if-none-match': etag } },
      { headers: { range: 'bytes=0-1' } },
      { method: 'HEAD' },
      { headers: { 'cache-control': 'only-if-cached' } },
      { headers: { cookie: 'Authorization=Basic' } },
      { headers: { host: 'puddle--prod.cdn.localhost' } },
    ]
    for (const form of forms) {
      const response = await get(edge, '/main.js', { localAddress: newSource(), ...form })
      assert.deepEqual([response.status, response.headers['cache-control']], [401, 'no-store'], JSON.stringify(form))
      assert.equal(response.headers.etag, undefined)
    }
    const known = await get(edge, '/main.js', { ...player, headers: { ...player.headers, 'if-none-match': etag } })
    assert.deepEqual([known.status, known.headers['cache-control']], [304, 'private, no-cache'])
    const large = { localAddress: newSource(), headers: basic('ada', 'x'.repeat(100_000)) }
    assert.equal((await get(edge, '/', large)).status, 431)
  })

  await t.test('an unknown name takes as long as a wrong password', async () => {
    const ROUNDS = 8
    const FACTOR_MAX = 2.5
    await set('timed', 'right', 10)
    await db.deleteFrom('namespace_auth_users').where('user', '<>', 'timed').execute()
    await told()
    const tookOf = async (user: string, password: string): Promise<number> => {
      const start = performance.now()
      const response = await get(edge, '/', { headers: basic(user, password), localAddress: newSource() })
      assert.equal(response.status, 401)
      return performance.now() - start
    }
    await until('the edge has read the users', async () => (await tookOf('ada', 'pässword:1')) > 0)
    const names: number[] = []
    const passwords: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      names.push(await tookOf(`nobody${round}`, 'x'))
      passwords.push(await tookOf('timed', `wrong ${round}`))
    }
    // The minimum of each: other load on this machine only adds time.
    const [name_ms, password_ms] = [Math.min(...names), Math.min(...passwords)]
    const ratio = name_ms / password_ms
    assert.ok(ratio < FACTOR_MAX && ratio > 1 / FACTOR_MAX, `${name_ms} ms and ${password_ms} ms`)
    await db.deleteFrom('namespace_auth_users').where('user', '=', 'timed').execute()
    await set('ada', 'pässword:1')
    await told()
    await until('ada can log in again', async () => {
      const player = { headers: basic('ada', 'pässword:1'), localAddress: newSource() }
      return (await get(edge, '/', player)).status === 200
    })
  })

  await t.test('a changed password, a removed user and a site made public take effect at once', async () => {
    const status = async (user: string, password: string) =>
      (await get(edge, '/', { headers: basic(user, password), localAddress: newSource() })).status
    await set('bob', 'first')
    await told()
    await until('bob can log in', async () => (await status('bob', 'first')) === 200)
    await set('bob', 'second')
    await told()
    await until('the first password is refused', async () => (await status('bob', 'first')) === 401)
    assert.equal(await status('bob', 'second'), 200)
    await db.deleteFrom('namespace_auth_users').where('user', '=', 'bob').execute()
    await told()
    await until('bob is refused', async () => (await status('bob', 'second')) === 401)
  })

  await t.test('guesses are limited, and users that are logged in are not affected', async () => {
    const localAddress = newSource()
    const player = { localAddress, headers: basic('ada', 'pässword:1') }
    assert.equal((await get(edge, '/', player)).status, 200)
    let limited = null
    for (let guess = 0; guess < AUTH_ATTEMPTS_BURST * 2 && limited === null; guess++) {
      const response = await get(edge, '/', { localAddress, headers: basic('ada', `guess ${guess}`) })
      if (response.status === 429) limited = response
      else assert.equal(response.status, 401)
    }
    assert.equal(limited?.code, 'API_RATE_LIMIT')
    assert.ok(Number(limited?.headers['retry-after']) >= 1)
    assert.equal((await get(edge, '/', player)).status, 200, 'the same client, remembered')
    edge.advance(AUTH_REMEMBERED_MS)
    assert.equal((await get(edge, '/', player)).status, 200, 'the limit has recovered')
  })

  await t.test('a page and its files share one check, and the event loop continues meanwhile', async () => {
    const COST = 12
    await set('slow', 'slow', COST)
    await told()
    const localAddress = newSource()
    await until('the edge has read the slow user', async () => {
      await get(edge, '/')
      const row = await db.selectFrom('namespace_auth_users').select('user').where('user', '=', 'slow').execute()
      return row.length === 1
    })
    let longest_ms = 0
    let last = performance.now()
    const timer = setInterval(() => {
      const now = performance.now()
      longest_ms = Math.max(longest_ms, now - last)
      last = now
    }, 1)
    const started = performance.now()
    const responses = await Promise.all(
      Array.from({ length: AUTH_ATTEMPTS_BURST * 2 }, () =>
        get(edge, '/main.js', { localAddress, headers: basic('slow', 'slow') }),
      ),
    )
    const all_ms = performance.now() - started
    clearInterval(timer)
    for (const response of responses) assert.equal(response.status, 200)
    const one = performance.now()
    await hash('x', { cost: COST })
    const one_ms = performance.now() - one
    assert.ok(all_ms < one_ms * AUTH_ATTEMPTS_BURST, `${all_ms} ms for all, ${one_ms} ms for one`)
    assert.ok(longest_ms < one_ms, `the loop stood still for ${longest_ms} ms; one hash takes ${one_ms} ms`)
  })
})
