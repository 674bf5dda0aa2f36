import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createGameNamespaceTokenPublic,
  type ErrorCode,
  findLobby,
  getGameById,
  getGames,
  listLobbies,
  playerConnected,
  setLobbyReady,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import { mainUrl } from '../../src/config/addresses.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import type { Seat } from '../support/platform-verbs.ts'
import { until } from '../support/until.ts'
import { type Answer, type Ask, ask, bearer, JSON_TYPE, requireRefusal } from './ask.ts'

const FIND = { method: 'POST', body: '{"game_modes":["default"]}' }

const findBy = (platform: Platform, origin: string, more: Ask = {}): Promise<Answer> =>
  ask(`${platform.matchmaker_url}${findLobby.path}`, {
    ...FIND,
    ...more,
    headers: { ...JSON_TYPE, origin, ...more.headers },
  })

/** Which namespace the seat of an answer is in. */
async function namespaceOf(platform: Platform, answer: Answer): Promise<string> {
  assert.equal(answer.status, 200, answer.text)
  const { lobby } = JSON.parse(answer.text) as Seat
  const row = await platform.ctx.db
    .selectFrom('lobbies')
    .where('lobby_id', '=', lobby.lobby_id)
    .select('namespace_id')
    .executeTakeFirstOrThrow()
  return row.namespace_id
}

/** Whatever page asks: a bearer token is the credential, and no cookie is. */
function assertReadable(answer: Answer): void {
  assert.equal(answer.headers['access-control-allow-origin'], '*', answer.text)
  assert.match(answer.headers['access-control-expose-headers'] ?? '', /x-ray-id.*retry-after/)
  assert.equal(answer.headers['access-control-allow-credentials'], undefined)
}

function assertUnreadable(answer: Answer): void {
  for (const name of Object.keys(answer.headers)) assert.ok(!name.startsWith('access-control-allow-origin'), name)
  assert.equal(answer.headers.vary, 'Origin')
}

/** The namespace staging on the version of prod. */
async function deployStaging(platform: Platform, { game_id, version_id }: TestGame): Promise<string> {
  const { game } = await platform.client.call(getGameById, { params: { game_id } })
  const { namespace_id } = game.namespaces.find((namespace) => namespace.name_id === 'staging')!
  const params = { game_id, namespace_id }
  await platform.client.call(updateGameNamespaceVersion, { params, body: { version_id } })
  return namespace_id
}

test("the origin of a namespace's CDN host stands for its public token", async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const staging_id = await deployStaging(platform, game)
  const prod = [
    `http://${game.name_id}.cdn.localhost`,
    `http://${game.name_id}.cdn.localhost:8000`,
    `https://${game.name_id}.cdn.localhost`,
    `https://${game.name_id}.cdn.localhost:8443`,
    `HTTP://${game.name_id.toUpperCase()}.CDN.LocalHost`,
    `http://${game.name_id}--prod.cdn.localhost`,
  ]
  for (const origin of prod) {
    const answer = await findBy(platform, origin)
    assertReadable(answer)
    assert.equal(await namespaceOf(platform, answer), game.namespace_id, origin)
  }
  const staging = `http://${game.name_id}--staging.cdn.localhost:8000`
  const answer = await findBy(platform, staging)
  assertReadable(answer)
  assert.equal(await namespaceOf(platform, answer), staging_id)
})

test('no other origin stands for a namespace: without a token its pages are refused, and can read why', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const before = await platform.journalEnds()
  const host = `${game.name_id}.cdn.localhost`
  const foreign = [
    'http://nobody.cdn.localhost',
    'http://cdn.localhost',
    'http://.cdn.localhost',
    `http://${game.name_id}--nothing.cdn.localhost`,
    `http://${game.name_id}--staging--prod.cdn.localhost`,
    `http://${game.name_id}--.cdn.localhost`,
    `http://--${game.name_id}.cdn.localhost`,
    `http://www.${host}`,
    `http://${host}.`,
    `http://${host}.example.com`,
    `http://example.com/.${host}`,
    `http://${game.name_id}cdn.localhost`,
    `http://${game.name_id}.localhost`,
    `http://someone@${host}`,
    `http://${host}/`,
    `http://${host}/page`,
    `http://${host}?`,
    `http://${host}:`,
    `http://${host}, http://${host}`,
    ` http://${host} http://example.com`,
    `ws://${host}`,
    `file://${host}`,
    host,
    'null',
    '',
    'http://example.com',
    'http://xn--.cdn.localhost',
  ]
  for (const origin of foreign) {
    const answer = await findBy(platform, origin)
    requireRefusal(answer, 'API_UNAUTHORIZED')
    assertReadable(answer)
    const preflight = await ask(`${platform.matchmaker_url}${findLobby.path}`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    })
    assertReadable(preflight)
  }
  assert.equal(await platform.journalEnds(), before)
})

test('a namespace that does not let its domain stand for a token is closed to its page, from then on', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const origin = `http://${game.name_id}.cdn.localhost`
  assert.equal((await findBy(platform, origin)).status, 200)
  const setFlag = async (enable_domain_public_auth: boolean) => {
    await platform.ctx.db
      .updateTable('namespaces')
      .set({ enable_domain_public_auth })
      .where('namespace_id', '=', game.namespace_id)
      .execute()
    await platform.ctx.listener.notify('namespaces', game.namespace_id)
  }
  await setFlag(false)
  const refusal = await until('the change to be known', async () => {
    const answer = await findBy(platform, origin)
    return answer.status !== 200 && answer
  })
  requireRefusal(refusal, 'API_UNAUTHORIZED')
  assertReadable(refusal)
  // With its token, from anywhere: a program that is no browser sends what Origin it likes.
  assert.equal((await findBy(platform, origin, { headers: bearer(game.public_token) })).status, 200)
  await setFlag(true)
  await until('the change to be known', async () => (await findBy(platform, origin)).status === 200)
})

test('a token counts before the origin', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const [game, other] = [await platform.game(), await platform.game()]
  const origin = `http://${game.name_id}.cdn.localhost`
  const by_token = await findBy(platform, origin, { headers: bearer(other.public_token) })
  assert.equal(await namespaceOf(platform, by_token), other.namespace_id)
  assertReadable(by_token)
  for (const authorization of ['Bearer nonsense', 'Basic dXNlcjpwYXNz', 'Bearer', '']) {
    const answer = await findBy(platform, origin, { headers: { authorization } })
    requireRefusal(answer, 'TOKEN_INVALID')
    assertReadable(answer)
  }
})

test('an origin stands for nothing but the public token', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const origin = `http://${game.name_id}.cdn.localhost`
  for (const { path, method } of [setLobbyReady, playerConnected]) {
    const headers = { ...JSON_TYPE, origin }
    requireRefusal(await ask(`${platform.matchmaker_url}${path}`, { method, headers, body: '{}' }), 'API_UNAUTHORIZED')
  }
  const cloud = await ask(`${platform.api_url}${getGames.path}`, { headers: { origin } })
  requireRefusal(cloud, 'API_UNAUTHORIZED')
  assert.equal(cloud.headers['access-control-allow-origin'], undefined)
})

test('a browser may ask first, and learns what it may send', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const before = await platform.journalEnds()
  for (const origin of [`http://${game.name_id}.cdn.localhost:8000`, mainUrl(platform.ctx.config)]) {
    for (const path of [findLobby.path, findLobby.aliases[0]!]) {
      const answer = await ask(`${platform.matchmaker_url}${path}`, {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type,idempotency-key',
        },
      })
      assert.equal(answer.status, 204)
      assert.equal(answer.text, '')
      assertReadable(answer)
      assert.match(answer.headers['access-control-allow-methods'] ?? '', /\bPOST\b/)
      const allowed = answer.headers['access-control-allow-headers']?.split(', ')
      assert.deepEqual(allowed, ['authorization', 'content-type', 'idempotency-key'])
      assert.match(answer.headers['access-control-max-age'] ?? '', /^\d+$/)
      assert.match(String(answer.headers['x-ray-id']), /^[0-9a-f-]{36}$/)
    }
  }
  assert.equal(await platform.journalEnds(), before)
})

test('the hub may read answers, but its origin is no credential', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const hub = mainUrl(platform.ctx.config)
  const stranger = await findBy(platform, hub)
  requireRefusal(stranger, 'API_UNAUTHORIZED')
  assertReadable(stranger)
  const list = await ask(`${platform.matchmaker_url}${listLobbies.path}`, {
    headers: { origin: hub, ...bearer(game.public_token) },
  })
  assert.equal(list.status, 200)
  assertReadable(list)
  // What is not for players' pages is for the hub alone.
  const path = `/cloud/games/${game.game_id}/matchmaker/lobbies/${game.game_id}`
  for (const [origin, readable] of [
    [hub, true],
    [`${hub}0`, false],
    [`http://${game.name_id}.cdn.localhost`, false],
    ['http://example.com', false],
  ] as const) {
    const answer = await ask(`${platform.matchmaker_url}${path}`, { method: 'DELETE', headers: { origin } })
    requireRefusal(answer, 'API_UNAUTHORIZED')
    if (!readable) assertUnreadable(answer)
    else assert.equal(answer.headers['access-control-allow-origin'], hub)
    assert.equal(answer.headers.vary, 'Origin')
  }
})

test('a page can read every refusal', async (t) => {
  const platform = await startPlatform(t, { env: { MUSTER_RATE_LIMIT_SEATS: '5' } })
  const game = await platform.game({ limits: { max_players_per_client: 0 } })
  const origin = `http://${game.name_id}.cdn.localhost`
  const refusals: [ErrorCode, Ask][] = [
    ['API_BAD_BODY', { body: '{' }],
    ['VALIDATION_ERROR', { body: '{}' }],
    ['API_UNSUPPORTED_MEDIA_TYPE', { headers: { 'content-type': 'text/plain' }, body: 'game_modes=default' }],
    ['API_BODY_TOO_LARGE', { body: `"${'x'.repeat(70_000)}"` }],
    ['MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', {}],
    ['API_RATE_LIMIT', {}],
    ['TOKEN_INVALID', { headers: bearer('nonsense') }],
  ]
  for (const [code, more] of refusals) {
    const answer = await findBy(platform, origin, more)
    requireRefusal(answer, code)
    assertReadable(answer)
  }
  const nowhere = await ask(`${platform.matchmaker_url}/matchmaker/nothing`, { headers: { origin } })
  requireRefusal(nowhere, 'API_NOT_FOUND')
  assertReadable(nowhere)
})

test('a page finds its own way: the well-known file of its host, and from there a seat', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  platform.playServers()
  const game = await platform.game()
  const staging_id = await deployStaging(platform, game)
  const hosts = { [game.name_id]: game.namespace_id, [`${game.name_id}--staging`]: staging_id }
  const port = new URL(platform.edge_url).port
  for (const [label, namespace_id] of Object.entries(hosts)) {
    const host = `${label}.cdn.localhost:${port}`
    const known = await ask(`${platform.edge_url}/.well-known/muster.json`, { headers: { host } })
    assert.equal(known.status, 200, known.text)
    const { matchmaker_url, version_id, ...ids } = JSON.parse(known.text) as Record<string, string>
    assert.deepEqual(ids, { game_id: game.game_id, namespace_id })
    assert.equal(matchmaker_url, mainUrl(platform.ctx.config))
    const origin = `http://${host}`
    const answer = await ask(`${platform.edge_url}${findLobby.path}`, {
      ...FIND,
      headers: { ...JSON_TYPE, origin, host: new URL(matchmaker_url!).host },
    })
    assertReadable(answer)
    assert.equal(await namespaceOf(platform, answer), namespace_id)
    assert.equal((JSON.parse(answer.text) as { lobby: { version_id: string } }).lobby.version_id, version_id)
  }
  const stranger = await ask(`${platform.edge_url}/.well-known/muster.json`, {
    headers: { host: 'nobody.cdn.localhost' },
  })
  requireRefusal(stranger, 'SITE_NOT_FOUND')
})

test('the public token of a namespace is for that namespace', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const params = { game_id: game.game_id, namespace_id: await deployStaging(platform, game) }
  const { token } = await platform.client.call(createGameNamespaceTokenPublic, { params })
  assert.match(token, /^pub_staging\./)
  const answer = await findBy(platform, 'http://example.com', { headers: bearer(token) })
  assert.equal(await namespaceOf(platform, answer), params.namespace_id)
  assertReadable(answer)
})
