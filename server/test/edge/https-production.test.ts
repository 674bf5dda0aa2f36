import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { before, type TestContext, test } from 'node:test'
import {
  completeAccessTokenVerification,
  createGameVersion,
  getGameById,
  listGroups,
  prepareDeviceLink,
  refreshIdentityToken,
  updateGameNamespaceVersion,
  type VersionConfig,
} from '@musterhost/contract'
import { newId } from '../../src/ids.ts'
import { makeAuthority, type TestAuthority } from '../support/certificates.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { rawClient } from './platform.ts'

const MAIN = 'muster.example'
const ORIGIN = `https://${MAIN}`

let authority: TestAuthority
before(async () => {
  authority = await makeAuthority()
})

async function startProduction(t: TestContext, env: Record<string, string> = {}): Promise<Platform> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-production-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const { cert, key } = await authority.issue([MAIN, '*.pages.test', 'custom.example'])
  await writeFile(join(folder, 'all.key'), key)
  await writeFile(join(folder, 'all.crt'), cert)
  return startPlatform(t, {
    roles: 'api,matchmaker,edge',
    env: {
      MUSTER_DOMAIN_MAIN: MAIN,
      MUSTER_DOMAIN_CDN: 'pages.test',
      MUSTER_DOMAIN_JOB: 'lobbies.invalid',
      MUSTER_TLS_CERTIFICATES: folder,
      MUSTER_ADVERTISED_HTTP_PORT: '80',
      MUSTER_ADVERTISED_HTTPS_PORT: '443',
      ...env,
    },
  })
}

type AskOptions = { method?: string; path?: string; headers?: Record<string, string>; body?: unknown }

/** Requests a URL as a browser that has looked up the host's address. */
async function ask(platform: Platform, url: string, asked: AskOptions = {}) {
  const { protocol, host, pathname, search } = new URL(url)
  const is_secure = protocol === 'https:'
  const { edge_http_port, edge_https_port } = platform.ctx.config
  const options = {
    host: '127.0.0.1',
    port: is_secure ? edge_https_port : edge_http_port,
    method: asked.method ?? 'GET',
    path: `${pathname}${search}`,
    headers: { ...(asked.body !== undefined && { 'content-type': 'application/json' }), ...asked.headers, host },
    agent: false as const,
  }
  const req = is_secure ? requestHttps({ ...options, servername: host, ca: authority.cert }) : requestHttp(options)
  req.end(
    asked.body === undefined
      ? undefined
      : typeof asked.body === 'string' || Buffer.isBuffer(asked.body)
        ? asked.body
        : JSON.stringify(asked.body),
  )
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  return { status: res.statusCode, headers: res.headers, body: await text(res) }
}

test('production uses https everywhere, from the hub to every link', async (t) => {
  const platform = await startProduction(t)
  platform.playServers()
  const game = await platform.game()
  const authorization = `Bearer ${platform.token}`

  await t.test('every public URL begins with https', async () => {
    const link = await platform.client.call(prepareDeviceLink, {})
    assert.ok(link.device_link_url.startsWith(`${ORIGIN}/devices/link/`), link.device_link_url)
    const refused = JSON.parse((await ask(platform, `${ORIGIN}/nothing`)).body)
    assert.ok(refused.documentation.startsWith(`${ORIGIN}/`), refused.documentation)
  })

  await t.test('the session cookie is limited to https and to its host', async () => {
    const login = completeAccessTokenVerification
    const said = await ask(platform, `${ORIGIN}${login.path}`, {
      method: login.method,
      headers: { origin: ORIGIN },
      body: { access_token: platform.token },
    })
    assert.equal(said.status, 200, said.body)
    const [cookie = ''] = said.headers['set-cookie'] ?? []
    assert.match(cookie, /^__Host-muster_session=[^;]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=\d+; Secure$/)
    const refreshed = (origin: string) =>
      ask(platform, `${ORIGIN}${refreshIdentityToken.path}`, {
        method: refreshIdentityToken.method,
        headers: { origin, cookie: cookie.split(';')[0]! },
        body: {},
      })
    assert.equal((await refreshed(`http://${MAIN}`)).status, 403)
    assert.equal((await refreshed(`https://game.pages.test`)).status, 403)
    assert.equal((await refreshed(ORIGIN)).status, 200)
  })

  await t.test('no page but the hub can use the cookie, whatever request it causes', async () => {
    const login = completeAccessTokenVerification
    const evil = 'https://evil.example'
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const json = { 'content-type': 'application/json' }
    const plain = { 'content-type': 'text/plain' }
    const said = await ask(platform, `${ORIGIN}${login.path}`, {
      ...{ method: login.method, headers: { origin: ORIGIN }, body: { access_token: platform.token } },
    })
    const cookie = said.headers['set-cookie']![0]!.split(';')[0]!
    const post = (headers: Record<string, string>, body: string) =>
      ask(platform, `${ORIGIN}${refreshIdentityToken.path}`, { method: refreshIdentityToken.method, headers, body })
    const attempts: [what: string, headers: Record<string, string>, body: string][] = [
      ['a form of another site', { cookie, origin: evil, ...form }, 'logout=true'],
      ['a form that says it is of the hub', { cookie, origin: ORIGIN, ...form }, 'logout=true'],
      ['a form without an origin', { cookie, ...form }, 'logout=true'],
      ['JSON as text', { cookie, origin: evil, ...plain }, '{"logout":true}'],
      ['JSON as text of the hub', { cookie, origin: ORIGIN, ...plain }, '{"logout":true}'],
      ['JSON of another site', { cookie, origin: evil, ...json }, '{"logout":true}'],
      ['JSON without an origin', { cookie, ...json }, '{"logout":true}'],
      ['JSON of a sandboxed frame', { cookie, origin: 'null', ...json }, '{"logout":true}'],
      ['JSON of a lobby', { cookie, origin: 'https://x-game.lobby.local.lobbies.invalid', ...json }, '{"logout":true}'],
      [
        'the cookie under the name of a laptop',
        { cookie: cookie.replace('__Host-', ''), origin: ORIGIN, ...json },
        '{}',
      ],
    ]
    for (const [what, headers, body] of attempts) {
      const response = await post(headers, body)
      assert.ok([400, 401, 403, 415].includes(response.status ?? 0), `${what}: ${response.status} ${response.body}`)
      assert.equal(response.headers['set-cookie'], undefined, what)
    }
    const { method, path } = listGroups
    assert.equal((await ask(platform, `${ORIGIN}${path}`, { method, headers: { cookie, origin: ORIGIN } })).status, 401)
    assert.equal((await post({ cookie, origin: ORIGIN, ...json }, '{}')).status, 200, 'none of it ended the session')
    const planted = await ask(platform, `${ORIGIN}${login.path}`, {
      ...{ method: login.method, headers: { origin: evil }, body: { access_token: platform.token } },
    })
    assert.equal(planted.status, 403)
    assert.equal(planted.headers['set-cookie'], undefined)
  })

  const { site_url, presigned } = await deploySite(platform, game, authorization)

  await t.test('uploads have presigned https URLs, and arrive', () => {
    assert.ok(presigned.startsWith(`${ORIGIN}/objects/`), presigned)
  })

  await t.test('http is redirected to https with path and method where a certificate covers the host', async () => {
    const main = await ask(platform, `http://${MAIN}/cloud/bootstrap?a=b`)
    assert.deepEqual([main.status, main.headers.location], [308, `${ORIGIN}/cloud/bootstrap?a=b`])
    assert.equal(main.headers['strict-transport-security'], undefined)
    const site = await ask(platform, `http://${new URL(site_url).host}/a//b`, { method: 'POST', body: {} })
    assert.deepEqual([site.status, site.headers.location], [308, `${site_url}/a//b`])
    assert.equal((await ask(platform, site_url)).body, 'a site')
  })

  await t.test('only the main domain sends HSTS, and only over https', async () => {
    const { headers } = await ask(platform, `${ORIGIN}/cloud/bootstrap`)
    assert.equal(headers['strict-transport-security'], 'max-age=15552000')
    assert.equal((await ask(platform, site_url)).headers['strict-transport-security'], undefined)
  })

  await t.test('a custom domain is redirected to https only once it has a certificate', async () => {
    for (const domain of ['custom.example', 'bare.example']) {
      await platform.ctx.db
        .insertInto('domains')
        .values({
          ...{ domain_id: newId(platform.ctx.now()), namespace_id: game.namespace_id, domain, txt_value: 'n' },
          ...{ cname_label: domain, verification_status: 'active', verification_errors: '[]' },
        })
        .execute()
    }
    const covered = await ask(platform, 'http://custom.example/x')
    assert.deepEqual([covered.status, covered.headers.location], [308, 'https://custom.example/x'])
    assert.equal((await ask(platform, 'https://custom.example/')).body, 'a site')
    assert.equal((await ask(platform, 'http://bare.example/')).body, 'a site')
    // No redirect: certificate authorities use http, and unknown hosts are refused.
    assert.equal((await ask(platform, 'http://custom.example/.well-known/acme-challenge/x')).status, 404)
    assert.equal((await ask(platform, 'http://stranger.pages.test.example/')).status, 404)
  })

  await t.test('pages may call the matchmaker from both schemes, and can read its address', async () => {
    const { host } = new URL(site_url)
    const told = JSON.parse((await ask(platform, `${site_url}/.well-known/muster.json`)).body)
    assert.equal(told.matchmaker_url, ORIGIN)
    for (const origin of [site_url, `http://${host}`, 'https://custom.example', 'http://custom.example', ORIGIN]) {
      const response = await ask(platform, `${ORIGIN}/matchmaker/lobbies/list`, {
        headers: { origin, authorization: `Bearer ${game.public_token}` },
      })
      assert.equal(response.headers['access-control-allow-origin'], '*')
    }
    const response = await ask(platform, `${ORIGIN}/matchmaker/lobbies/list`, {
      headers: { origin: 'https://evil.example' },
    })
    assert.equal(response.status, 401)
    assert.equal(response.headers['access-control-allow-origin'], '*')
  })

  await t.test('a port with https is returned with 443, TLS, and a ready-to-use URL', async () => {
    const found = await ask(platform, `${ORIGIN}/matchmaker/lobbies/find`, {
      method: 'POST',
      headers: { authorization: `Bearer ${game.public_token}` },
      body: { game_modes: ['default'] },
    })
    assert.equal(found.status, 200, found.body)
    const { lobby, ports } = JSON.parse(found.body)
    const hostname = (name: string) => `${lobby.lobby_id}-${name}.lobby.local.lobbies.invalid`
    assert.deepEqual(ports, {
      game: {
        host: `${hostname('game')}:443`,
        hostname: hostname('game'),
        port: 443,
        is_tls: true,
        url: `${ORIGIN}/lobbies/${lobby.lobby_id}/game`,
      },
      plain: {
        host: `${hostname('plain')}:80`,
        hostname: hostname('plain'),
        port: 80,
        is_tls: false,
        url: `http://${hostname('plain')}`,
      },
      raw: {
        host: `${hostname('raw')}:${ports.raw.port}`,
        hostname: hostname('raw'),
        port: ports.raw.port,
        is_tls: true,
        url: `tls://ports.lobby.local.lobbies.invalid:${ports.raw.port}`,
      },
    })
    // No runner is running: the refusal comes from the route, and is no redirect.
    for (const url of [`http://${hostname('plain')}/`, `http://${MAIN}/lobbies/${lobby.lobby_id}/plain/`]) {
      const response = await ask(platform, url)
      assert.deepEqual([response.status, JSON.parse(response.body).code], [404, 'LOBBY_NOT_FOUND'], url)
    }
  })

  await t.test('a WebSocket is never redirected, because its clients follow no redirect', async () => {
    const client = rawClient(t, platform.ctx.config.edge_http_port)
    client.write(
      `GET /x HTTP/1.1\r\nHost: ${MAIN}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    )
    assert.doesNotMatch(await client.end(), / 308 /)
  })
})

test('behind a proxy that speaks TLS there is no redirect loop', async (t) => {
  const platform = await startProduction(t, { MUSTER_TRUSTED_PROXIES: '127.0.0.1/32' })
  const forwarded = (scheme: string) =>
    ask(platform, `http://${MAIN}/cloud/bootstrap`, {
      headers: { 'x-forwarded-proto': scheme, 'x-forwarded-for': '192.0.2.1' },
    })
  const secure = await forwarded('https')
  assert.equal(secure.status, 200)
  assert.equal(secure.headers['strict-transport-security'], 'max-age=15552000')
  assert.equal((await forwarded('http')).status, 308)
})

test('an untrusted peer cannot claim https by a header', async (t) => {
  const platform = await startProduction(t)
  const response = await ask(platform, `http://${MAIN}/`, { headers: { 'x-forwarded-proto': 'https' } })
  assert.equal(response.status, 308)
})

async function deploySite(
  platform: Platform,
  { game_id, namespace_id }: { game_id: string; namespace_id: string },
  authorization: string,
) {
  const say = async (path: string, body: unknown) => {
    const response = await ask(platform, `${ORIGIN}${path}`, { method: 'POST', headers: { authorization }, body })
    assert.equal(response.status, 200, response.body)
    return JSON.parse(response.body)
  }
  const content = Buffer.from('a site')
  const made = await say(`/cloud/games/${game_id}/cdn/sites`, {
    display_name: 'Site',
    files: [{ path: 'index.html', content_length: content.length }],
  })
  const presigned: string = made.presigned_requests[0].url
  assert.equal((await ask(platform, presigned, { method: 'PUT', body: content })).status, 200)
  await say(`/cloud/uploads/${made.upload_id}/complete`, {})
  const { game } = await platform.client.call(getGameById, { params: { game_id } })
  const versions = await platform.ctx.db
    .selectFrom('versions')
    .innerJoin('namespaces', 'namespaces.version_id', 'versions.version_id')
    .where('namespaces.namespace_id', '=', namespace_id)
    .select('versions.config')
    .executeTakeFirstOrThrow()
  const { matchmaker } = versions.config as { matchmaker: NonNullable<VersionConfig['matchmaker']> }
  const ports = { game: {}, plain: { protocol: 'http' as const }, raw: { protocol: 'tcp_tls' as const } }
  const docker = { ...matchmaker.docker, ports }
  const config = { matchmaker: { ...matchmaker, docker }, cdn: { site_id: made.site_id } }
  const { version_id } = await platform.client.call(createGameVersion, {
    params: { game_id },
    body: { display_name: 'site', config },
  })
  await platform.client.call(updateGameNamespaceVersion, { params: { game_id, namespace_id }, body: { version_id } })
  return { site_url: `https://${game.name_id}.pages.test`, presigned }
}
