import assert from 'node:assert'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { sql } from 'kysely'
import { FAILED_LOOKUPS_PER_CLIENT_MAX, ROUTE_AGE_MS_MAX } from '../../src/edge/limits.ts'
import { newId } from '../../src/ids.ts'
import type { Subject } from '../../src/tokens/keys.ts'
import { until } from '../support/until.ts'
import { startBackend, startTestEdge, type TestEdge } from './platform.ts'

type HttpResponse = { status: number; code: string | null; body: string; headers: IncomingMessage['headers'] }

async function ask(
  edge: TestEdge,
  host: string,
  path = '/',
  headers: Record<string, string> = {},
): Promise<HttpResponse> {
  const req = request({ host: '127.0.0.1', port: edge.port, path, headers: { ...headers, host } })
  req.end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  const body = await text(res)
  const code = body.startsWith('{') ? ((JSON.parse(body) as { code: string }).code ?? null) : null
  return { status: res.statusCode ?? 0, code, body, headers: res.headers }
}

const hostOf = (lobby_id: string, port_name = 'default', region = 'local') =>
  `${lobby_id}-${port_name}.lobby.${region}.localhost`

test('an unknown, future, ended or foreign lobby gets a 404 with the error body', async (t) => {
  const api = await startBackend(t, 'api')
  const backend = await startBackend(t, 'lobby')
  const edge = await startTestEdge(t, { api_port: api.port })
  const running = await edge.lobby({ default: backend.port })
  const ended = await edge.lobby({ default: backend.port }, { exit_ts: new Date() })
  const elsewhere = await edge.lobby({ default: backend.port }, { region: 'far-away' })
  assert.equal((await ask(edge, hostOf(running))).body, 'lobby')
  assert.equal((await ask(edge, hostOf(running).toUpperCase())).body, 'lobby')

  const hosts = [hostOf(ended), hostOf(elsewhere), hostOf(newId(Date.now())), hostOf(running, 'other')]
  for (const host of hosts) {
    const response = await ask(edge, host)
    assert.deepEqual([response.status, response.code], [404, 'LOBBY_NOT_FOUND'], host)
  }
  for (const host of [
    hostOf(running, 'default', 'far-away'),
    `x.${hostOf(running)}`,
    hostOf(running).replace(running, `${running}0`),
  ]) {
    assert.deepEqual([(await ask(edge, host)).code], ['API_NOT_FOUND'], host)
  }
  const paths = [
    `/lobbies/${ended}/default/`,
    `/lobbies/${running}/other/`,
    '/lobbies/nonsense/default/',
    '/lobbies',
    `/lobbies/${running}`,
  ]
  for (const path of paths) {
    const response = await ask(edge, 'localhost', path)
    assert.deepEqual([response.status, response.code], [404, 'LOBBY_NOT_FOUND'], path)
  }
  assert.equal(api.seen.length, 0)
})

test('every host but those of lobbies responds to a ping itself, and hides no file of a site', async (t) => {
  const api = await startBackend(t, 'api')
  const backend = await startBackend(t, 'lobby')
  const edge = await startTestEdge(t, {
    api_port: api.port,
    env: { MUSTER_EDGE_PUBLIC_HOST: 'fra-2.example.com' },
  })
  const lobby = hostOf(await edge.lobby({ default: backend.port }))
  const game = await edge.game('dots')
  await game.deploy(await game.site({ ping: 'a file of the site' }))
  const pings = [
    ...['localhost', 'fra-2.example.com', 'ports.lobby.local.localhost'].map((host) => [host, '/ping']),
    ...['localhost', 'dots.cdn.localhost', 'unknown.example.com'].map((host) => [host, '/.well-known/muster-ping']),
    ['localhost', '/ping?2'],
  ] as const
  for (const [host, path] of pings) {
    const { status, body, headers } = await ask(edge, host, path, { origin: 'https://game.example.com' })
    assert.deepEqual([status, body], [204, ''], `${host}${path}`)
    assert.equal(headers['access-control-allow-origin'], '*')
    assert.equal(headers['timing-allow-origin'], '*')
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers.connection, 'keep-alive', 'the next one needs no new connection')
  }
  assert.equal(api.seen.length, 0, 'no role is asked')
  assert.equal((await ask(edge, 'dots.cdn.localhost', '/ping')).body, 'a file of the site')
  assert.equal((await ask(edge, lobby, '/ping')).body, 'lobby')
  assert.equal((await ask(edge, lobby, '/.well-known/muster-ping')).body, 'lobby')
  assert.equal((await ask(edge, 'localhost', '/pings')).body, 'api')
  const posted = request({
    host: '127.0.0.1',
    port: edge.port,
    path: '/ping',
    method: 'POST',
    headers: { host: 'localhost' },
  })
  posted.end()
  const [refused] = (await once(posted, 'response')) as [IncomingMessage]
  refused.resume()
  assert.deepEqual([refused.statusCode, refused.headers.allow], [405, 'GET, HEAD'])
})

test('the path route removes its prefix, and isolates lobby and hub from each other', async (t) => {
  const backend = await startBackend(t, 'lobby', (req, res) => {
    res.setHeader('set-cookie', 'hub=stolen')
    res.setHeader('service-worker-allowed', '/')
    res.setHeader('access-control-allow-origin', '*')
    res.end(`${req.url} ${req.headers.cookie}`)
  })
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  const paths = { '': '/', '/': '/', '/a/b?c=d': '/a/b?c=d', '?c=d': '/?c=d', '//x': '//x' }
  for (const [rest, url] of Object.entries(paths)) {
    const response = await ask(edge, 'localhost', `/lobbies/${lobby_id}/default${rest}`, { cookie: 'hub=secret' })
    assert.equal(response.body, `${url} undefined`)
    assert.equal(response.headers['set-cookie'], undefined)
    assert.equal(response.headers['service-worker-allowed'], undefined)
    assert.equal(response.headers['content-security-policy'], 'sandbox')
    assert.equal(response.headers['access-control-allow-origin'], '*')
  }
  const by_host = await ask(edge, hostOf(lobby_id), '/', { cookie: 'own=yes' })
  assert.equal(by_host.body, '/ own=yes')
  assert.deepEqual(by_host.headers['set-cookie'], ['hub=stolen'])
})

test('on the path route a lobby sets no header that acts on the main domain', async (t) => {
  const powers = {
    ...{
      'alt-svc': 'h3=":26001"',
      refresh: '0; url=/hub',
      'speculation-rules': '"/rules.json"',
      'accept-ch': 'Sec-CH-UA',
    },
    ...{
      'origin-agent-cluster': '?0',
      'x-ray-id': 'forged',
      link: '</x>; rel=preload',
      'content-security-policy': 'none',
    },
    ...{
      'set-cookie': 'hub=stolen',
      'clear-site-data': '"*"',
      'service-worker-allowed': '/',
      nel: '{}',
      'report-to': '{}',
    },
    ...{
      'strict-transport-security': 'max-age=0',
      'reporting-endpoints': 'a="/b"',
      'www-authenticate': 'Basic realm=hub',
    },
    ...{
      'permissions-policy': 'camera=*',
      'critical-ch': 'Sec-CH-UA',
      'supports-loading-mode': 'credentialed-prerender',
    },
    ...{
      'activate-storage-access': 'load',
      'set-login': 'logged-out',
      'use-as-dictionary': 'match="/*"',
      'x-own': 'yes',
    },
  }
  const data = {
    ...{ 'content-type': 'text/plain', 'cache-control': 'no-cache', etag: '"a"', 'access-control-allow-origin': '*' },
    ...{ 'content-disposition': 'inline', 'retry-after': '3', location: '/elsewhere', vary: 'Accept' },
    ...{ 'cross-origin-resource-policy': 'cross-origin', 'last-modified': 'Sun, 22 Nov 2026 11:00:00 GMT' },
  }
  const backend = await startBackend(t, 'lobby', (_req, res) => void res.writeHead(200, { ...powers, ...data }).end())
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  const by_path = await ask(edge, 'localhost', `/lobbies/${lobby_id}/default/`)
  const own = { 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' }
  const { date, connection, 'keep-alive': keep_alive, 'content-length': length, ...rest } = by_path.headers
  assert.deepEqual(rest, { ...data, ...own, 'transfer-encoding': 'chunked' })
  // Under its own host the lobby may set any header.
  const by_host = await ask(edge, hostOf(lobby_id))
  for (const name of Object.keys(powers)) assert.notEqual(by_host.headers[name], undefined, name)
})

test("on the path route a lobby gets neither the platform's credentials nor the edge's own headers", async (t) => {
  const backend = await startBackend(t, 'lobby')
  const edge = await startTestEdge(t)
  const { keys } = edge.ctx
  const lobby_id = await edge.lobby({ default: backend.port })
  const id = newId(edge.ctx.now())
  const issue = (subject: Subject) => keys.issue(subject, { now_ms: edge.ctx.now(), lifetime_ms: 60_000, name: 'prod' })
  const player = issue({ kind: 'player', player_id: id, lobby_id, namespace_id: id })
  const ours = [
    issue({ kind: 'access', name: 'admin' }),
    issue({ kind: 'user', user_id: id, session_id: id }),
    issue({ kind: 'device', device_link_id: id }),
    issue({ kind: 'cloud', game_id: id }),
    issue({ kind: 'public', namespace_id: id }),
    issue({ kind: 'lobby', lobby_id, namespace_id: id }),
    issue({ kind: 'development', namespace_id: id, hostname: 'localhost', ports: [] }),
    issue({ kind: 'game_user', identity_id: id, namespace_id: id }),
  ]
  const seenOf = async (authorization: string, path = `/lobbies/${lobby_id}/default/`) => {
    await ask(edge, 'localhost', path, {
      authorization,
      cookie: '__Host-muster_session=secret',
      'x-muster-edge': 'forged',
    })
    const { headers } = backend.seen.at(-1)!
    for (const name of ['cookie', 'x-muster-edge', 'x-ray-id']) assert.equal(headers[name], undefined, name)
    return headers.authorization
  }
  for (const token of ours) {
    const forms = ['Bearer ', 'bearer\t ', '', 'Token token=', 'Basic dXNyOnBhc3M=, Bearer ']
    for (const form of forms) assert.equal(await seenOf(`${form}${token}`), undefined, form)
  }
  for (const token of ours) {
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
    for (const form of [basic(`token:${token}`), basic(`${token}:`)]) assert.equal(await seenOf(form), undefined, form)
    await ask(edge, 'localhost', `/lobbies/${lobby_id}/default/`, {
      'x-token': token,
      'sec-websocket-protocol': `chat, ${token}`,
      referer: `http://localhost/?token=${token}`,
      'x-own': 'kept',
    })
    const { headers } = backend.seen.at(-1)!
    const names = ['x-token', 'sec-websocket-protocol', 'referer']
    assert.deepEqual(
      [...names.map((name) => headers[name]), headers['x-own']],
      [undefined, undefined, undefined, 'kept'],
    )
    const count = backend.seen.length
    const queries = [`?token=${token}`, `?a=b&x=${token}#`, `?token=${token.replaceAll('.', '%2E')}`, `${token}/`]
    for (const query of queries) {
      const refused = await ask(edge, 'localhost', `/lobbies/${lobby_id}/default/${query}`)
      assert.deepEqual([refused.status, refused.code], [400, 'API_BAD_REQUEST'], query)
    }
    assert.equal(backend.seen.length, count)
  }
  await ask(edge, 'localhost', `/lobbies/${lobby_id}/default/?token=${player}&x=%`)
  assert.equal(backend.seen.at(-1)!.url, `/?token=${player}&x=%`)
  // The game's own credentials, and the token for the lobby's server, are forwarded.
  const theirs = [
    ...['Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln', 'Basic dXNyOnBhc3M=', 'Bearer access', 'Bearer lobby.7', 'usr.name'],
    ...[`Bearer ${player}`, `Bearer ${issue({ kind: 'dev_player', namespace_id: id, player_id: id })}`],
  ]
  for (const value of theirs) assert.equal(await seenOf(value), value)
})

test('an ended lobby gets a 404 as soon as the runner has reported its end', async (t) => {
  const backend = await startBackend(t, 'lobby')
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  assert.equal((await ask(edge, hostOf(lobby_id))).status, 200)
  await edge.endLobby(lobby_id)
  // The process may still respond; the route must not lead to it.
  await until('the route is gone', async () => (await ask(edge, hostOf(lobby_id))).status === 404)
  assert.ok(backend.server.listening)
})

test('a lobby whose end was not announced gets a 404 when its route has aged', async (t) => {
  const backend = await startBackend(t, 'lobby')
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  assert.equal((await ask(edge, hostOf(lobby_id))).status, 200)
  await edge.ctx.db.updateTable('lobby_runs').set({ exit_ts: new Date() }).where('lobby_id', '=', lobby_id).execute()
  edge.advance(ROUTE_AGE_MS_MAX)
  assert.equal((await ask(edge, hostOf(lobby_id))).status, 404)
})

test('a lobby that was requested too early is reachable as soon as its row exists', async (t) => {
  const backend = await startBackend(t, 'lobby')
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({})
  const row = await edge.ctx.db
    .deleteFrom('lobby_runs')
    .where('lobby_id', '=', lobby_id)
    .returningAll()
    .executeTakeFirstOrThrow()
  assert.equal((await ask(edge, hostOf(lobby_id))).status, 404)
  const ports = JSON.stringify({ default: { protocol: 'http', hostname: '127.0.0.1', port: backend.port } })
  const without_json = { log_tail: null, listening: null, ready_check: null, protocol_report: null }
  // Without a notification, and without time passing.
  await edge.ctx.db
    .insertInto('lobby_runs')
    .values({ ...row, ...without_json, handle: '{}', ports, create_ts: new Date() })
    .execute()
  assert.equal((await ask(edge, hostOf(lobby_id))).body, 'lobby')
})

test('the route of an address that refuses is read again: the lobby moved, ended or is broken', async (t) => {
  const first = await startBackend(t, 'first')
  const second = await startBackend(t, 'second')
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: first.port })
  const update = (values: { ports?: string; exit_ts?: Date }) =>
    edge.ctx.db.updateTable('lobby_runs').set(values).where('lobby_id', '=', lobby_id).execute()
  const portsOf = (port: number) => JSON.stringify({ default: { protocol: 'http', hostname: '127.0.0.1', port } })
  assert.equal((await ask(edge, hostOf(lobby_id))).body, 'first')
  await first.close()
  const broken = await ask(edge, hostOf(lobby_id))
  assert.deepEqual([broken.status, broken.code], [502, 'LOBBY_NOT_REACHABLE'])
  await update({ ports: portsOf(second.port) })
  assert.equal((await ask(edge, hostOf(lobby_id))).body, 'second')
  await second.close()
  await update({ exit_ts: new Date() })
  assert.equal((await ask(edge, hostOf(lobby_id))).status, 404)
})

test('guessing lobby ids is limited, and lobbies that exist stay reachable meanwhile', async (t) => {
  const backend = await startBackend(t, 'lobby')
  const edge = await startTestEdge(t)
  const known = await edge.lobby({ default: backend.port })
  assert.equal((await ask(edge, hostOf(known))).status, 200)
  // Its run has changed: it is looked up again, although its players' address has reached the limit meanwhile.
  await sql`select pg_notify('lobby_runs', ${known})`.execute(edge.ctx.db)
  const statuses = new Set<number>()
  edge.holdClock()
  for (let guess = 0; guess <= FAILED_LOOKUPS_PER_CLIENT_MAX; guess++) {
    const response = await ask(edge, hostOf(newId(Date.now())))
    statuses.add(response.status)
    if (response.status === 429) assert.equal(response.headers['retry-after'], '1')
  }
  assert.deepEqual([...statuses], [404, 429])
  assert.equal((await ask(edge, hostOf(known))).status, 200)
})

test('a known lobby is reachable while the database is down', async (t) => {
  const backend = await startBackend(t, 'lobby')
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  assert.equal((await ask(edge, hostOf(lobby_id))).status, 200)
  await edge.ctx.db.schema.alterTable('lobby_runs').renameTo('lobby_runs_away').execute()
  edge.advance(ROUTE_AGE_MS_MAX * 2)
  assert.equal((await ask(edge, hostOf(lobby_id))).body, 'lobby')
  const unknown = await ask(edge, hostOf(newId(Date.now())))
  assert.deepEqual([unknown.status, unknown.headers['retry-after']], [503, '1'])
})
