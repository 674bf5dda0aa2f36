// The whole platform at its most talkative, with a secret of every kind planted by using it; then much goes wrong. What the
// platform wrote, said and keeps is looked through for all of them.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, relative } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  createCloudToken,
  createGameBuild,
  createGameNamespaceTokenDevelopment,
  explainRay,
  findLobby,
  getGameVersionById,
  getRayPerfLogs,
  prepareDeviceLink,
  setNamespaceCdnAuthType,
  setupIdentity,
  startEmailVerification,
  updateNamespaceCdnAuthUser,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { hash } from '@node-rs/bcrypt'
import pg from 'pg'
import { readConfig } from '../../src/config/read-config.ts'
import { ROLES } from '../../src/config/roles.ts'
import { type Answer, ask, bearer, JSON_TYPE } from '../http/ask.ts'
import { startMailServer } from '../identity/mail-server.ts'
import { codeIn, logIn } from '../identity/people.ts'
import { SECRET as CAPTCHA_SECRET, SITE_KEY, startCaptchaServer } from '../matchmaker/captcha-server.ts'
import { startGameEndpoint } from '../matchmaker/game-endpoint.ts'
import { processesOf, roleOf, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { freePorts } from '../support/free-ports.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { createTestGame, type Platform } from '../support/platform.ts'
import { until } from '../support/until.ts'

const SITE_PASSWORD = 'planted-site-password'
const HASH = 'a password’s hash'

/** A server that reports what it was started with: its token is as secret as any. */
const SERVER = `
const http = process.getBuiltinModule('node:http')
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME } = process.env
const call = (path, body) => fetch(PLATFORM_API_URL + path, {
  method: 'POST', body: JSON.stringify(body),
  headers: { authorization: 'Bearer ' + PLATFORM_TOKEN, 'content-type': 'application/json' },
})
http.createServer(async (request, answer) => {
  const player_token = new URL(request.url, 'http://localhost').searchParams.get('token')
  if (player_token === null) return answer.end(PLATFORM_TOKEN)
  const { status } = await call('/matchmaker/players/connected', { player_token })
  answer.end(String(status))
}).listen(Number(PORT_GAME), '127.0.0.1', () => call('/matchmaker/lobbies/ready', {}))
process.on('SIGTERM', () => process.exit(0))
`

/** By what it is; the part of a token that makes it good is its signature. */
type Planted = Map<string, string>
const plantToken = (planted: Planted, what: string, token: string): string => {
  planted.set(what, token.split('.').at(-1)!)
  return token
}

async function startSilentCollector(t: TestContext): Promise<string> {
  const server = createServer((request, answer) => {
    request.resume()
    answer.writeHead(401).end(JSON.stringify({ seen: request.headers }))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

/** Every row of every table, as text. */
async function rowsOf(url: string): Promise<string> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`,
  )
  const tables: string[] = []
  for (const { name } of rows) {
    const content = await client.query<{ text: string }>(`select t::text as text from ${name} t`)
    tables.push(...content.rows.map(({ text }) => `${name} ${text}`))
  }
  await client.end()
  return tables.join('\n')
}

test('a secret of any kind is nowhere in what the platform writes, says and keeps, whatever goes wrong', async (t) => {
  const folder = temporaryFolder(t)
  const mail = await startMailServer(t)
  const captcha = await startCaptchaServer(t)
  const endpoint = await startGameEndpoint(t)
  const [http, https, api, matchmaker, lobby_api, metrics] = (await freePorts(5 + ROLES.length)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const planted: Planted = new Map([
    ['the mail server’s password', 'planted-smtp-password'],
    ['it, as it is said', Buffer.from('\0ada\0planted-smtp-password').toString('base64')],
    ['the collector’s credential', 'planted-otlp-credential'],
    ['the metrics token', 'planted-metrics-token'],
    ['the captcha’s secret', CAPTCHA_SECRET],
    ['the endpoint’s credential', 'planted-endpoint-credential'],
    ['a site’s password', SITE_PASSWORD],
    ['it, as browsers say it', Buffer.from(`ada:${SITE_PASSWORD}`).toString('base64')],
  ])
  const settings = {
    MUSTER_DATA: folder,
    MUSTER_EDGE_HTTP_PORT: String(http),
    MUSTER_EDGE_HTTPS_PORT: String(https),
    MUSTER_API_PORT: String(api),
    MUSTER_MATCHMAKER_PORT: String(matchmaker),
    MUSTER_LOBBY_API_PORT: String(lobby_api),
    MUSTER_METRICS_PORT: String(metrics),
    MUSTER_METRICS_TOKEN: 'planted-metrics-token',
    MUSTER_LOG_LEVEL: 'debug',
    MUSTER_IP_SEED: 'off',
    MUSTER_RAYS_PER_SECOND: '100',
    MUSTER_SMTP_URL: mail.url.replace('//', '//ada:planted-smtp-password@'),
    MUSTER_OTLP_URL: await startSilentCollector(t),
    MUSTER_OTLP_HEADERS: 'authorization=Bearer planted-otlp-credential',
    MUSTER_TURNSTILE_URL: captcha.url,
    MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8',
  }
  await placeCluster(folder)
  const muster = startMuster(settings)
  await muster.ready
  const url = `http://localhost:${http}`
  const refusals: string[] = []
  const ray_ids = new Set<string>()
  /** As anybody may: whatever is not granted is looked through. */
  const say = async (path: string, options: Parameters<typeof ask>[1] = {}, base = url): Promise<Answer> => {
    const answer = await ask(`${base}${path}`, options)
    if (answer.status >= 300) refusals.push(`${JSON.stringify(answer.headers)} ${answer.text}`)
    ray_ids.add(String(answer.headers['x-ray-id']))
    return answer
  }
  const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    say(path, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      headers: { ...JSON_TYPE, ...headers },
    })

  // What is given out.
  const admin_token = plantToken(planted, 'the admin token', readFileSync(join(folder, 'admin-token'), 'utf8').trim())
  const client = createClient({ url, token: admin_token })
  const as = (token: string) => createClient({ url, token })
  const person = await logIn(
    { api_url: url, ctx: { config: readConfig(settings) } } as Platform,
    mail,
    'ada@example.com',
  )
  plantToken(planted, 'a person’s token', person.token)
  plantToken(planted, 'a session cookie', person.cookie)
  const { verification_id } = await as('').call(startEmailVerification, { body: { email: 'bob@example.com' } })
  planted.set('a login code', codeIn(mail, 'bob@example.com'))
  const game = await createTestGame(
    { client, api_url: url, as },
    {
      files: { 'server.mjs': SERVER },
      matchmaker: {
        captcha: {
          requests_before_reverify: 1,
          verification_ttl: 1,
          turnstile: { site_key: SITE_KEY, secret_key: CAPTCHA_SECRET },
        },
        game_modes: {
          default: {
            actions: {
              find: {
                enabled: true,
                verification_config: { url: endpoint.url, headers: { 'x-gate': 'planted-endpoint-credential' } },
              },
            },
          },
        },
      },
    },
  )
  const { game_id, namespace_id, public_token, version_id } = game
  plantToken(planted, 'a public token', public_token)
  const cloud = await client.call(createCloudToken, { params: { game_id } })
  plantToken(planted, 'a cloud token', cloud.token)
  const development = await client.call(createGameNamespaceTokenDevelopment, {
    params: { game_id, namespace_id },
    body: { hostname: 'localhost', ports: { game: { port: 1_234, protocol: 'http' } } },
  })
  plantToken(planted, 'a development token', development.token)
  const guest = await as(public_token).call(setupIdentity, { body: {} })
  plantToken(planted, 'an identity’s token', guest.identity_token)
  const device = await as('').call(prepareDeviceLink, {})
  plantToken(planted, 'a device link', device.device_link_token)
  const upload = await client.call(createGameBuild, {
    params: { game_id },
    body: { display_name: 'never sent', image_tag: 'never:sent', image_file: { path: 'a.tar.gz', content_length: 9 } },
  })
  const presigned = upload.image_presigned_request!.url
  planted.set('a presigned address', /signature=([0-9a-f]+)/.exec(presigned)![1]!)
  const site_hash = await hash(SITE_PASSWORD, { cost: 4 })
  planted.set(HASH, site_hash.slice(7))
  const params = { game_id, namespace_id }
  await client.call(updateNamespaceCdnAuthUser, { params, body: { user: 'ada', password: site_hash } })
  await client.call(setNamespaceCdnAuthType, { params, body: { auth_type: 'basic' } })

  // Seats: with a captcha, past the game's endpoint, to a lobby whose server knows its own token.
  const wish = (client_response = captcha.solve()) => ({
    game_modes: ['default'],
    captcha: { turnstile: { client_response } },
    verification_data: { ticket: 'planted-ticket' },
  })
  planted.set('what a player shows the game’s endpoint', 'planted-ticket')
  const seat = await as(public_token).call(findLobby, { body: wish() })
  planted.set('a captcha’s response', 'response-1')
  const player_token = plantToken(planted, 'a player’s token', seat.player.token)
  const port_url = seat.lobby.ports.game!.url!
  const lobby_token = plantToken(planted, 'a lobby’s token', await (await fetch(port_url)).text())
  assert.equal(await (await fetch(`${port_url}?token=${player_token}`)).text(), '200')
  const environ = readFileSync(`/proc/${roleOf(folder, 'api')}/environ`, 'utf8')
  const database_url = /DATABASE_URL=([^\0]+)/.exec(environ)![1]!
  planted.set('the database’s password', /:\/\/[^:]+:([^@]+)@/.exec(database_url)![1]!)

  // Much goes wrong: at the edge, before the roles, in them, and behind them.
  const tokens = [admin_token, person.token, public_token, cloud.token, development.token, guest.identity_token]
  for (const token of [...tokens, player_token, lobby_token, device.device_link_token]) {
    await say(`/cloud/games/${token}`, { headers: bearer(token) })
    await say(`/cloud/games/${game_id}/builds?token=${token}&watch_index=${token}`, { headers: bearer(`${token}x`) })
    await say(`/${token}`, { headers: { authorization: `Basic ${token}`, cookie: `${person.cookie}; x=${token}` } })
    await post('/cloud/games', `{"display_name": "${token}", `, bearer(admin_token))
    await post('/cloud/games', { display_name: token, name_id: token, developer_group_id: token }, bearer(admin_token))
    await post('/matchmaker/players/connected', { player_token: `${token}x` }, bearer(lobby_token))
    await post('/matchmaker/players/connected', { player_token: token }, bearer(lobby_token))
    await post('/matchmaker/lobbies/find', wish(token), bearer(public_token))
    await post('/matchmaker/lobbies/find', { game_modes: [token] }, bearer(public_token))
    await say(`/cloud/games/${game_id}/namespaces/${namespace_id}/analytics/matchmaker/live?token=${token}x`, {
      headers: { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'x' },
    })
    await say(`/lobbies/${seat.lobby.lobby_id}/nowhere/?token=${token}`)
  }
  await post('/auth/identity/email/complete-verification', { verification_id, code: 'WRONG123' })
  await post('/auth/tokens/identity', {}, { origin: url, cookie: `${person.cookie}x` })
  await say(`${new URL(presigned).pathname}${new URL(presigned).search}`, { method: 'PUT', body: 'too short' })
  await say(`${new URL(presigned).pathname}${new URL(presigned).search}0`, { method: 'PUT', body: 'forged...' })
  const { version } = await client.call(getGameVersionById, { params: { game_id, version_id } })
  const broken = structuredClone(version.config) as Record<string, unknown>
  const captcha_config = { turnstile: { site_key: 7, secret_key: CAPTCHA_SECRET, other: CAPTCHA_SECRET } }
  Object.assign(broken.matchmaker as object, { captcha: captcha_config })
  await post(`/cloud/games/${game_id}/versions`, { display_name: 'x', config: broken }, bearer(admin_token))
  const site = { host: `${game.name_id}.cdn.localhost:${http}` }
  for (const password of [SITE_PASSWORD, `${SITE_PASSWORD}x`]) {
    const authorization = `Basic ${Buffer.from(`ada:${password}`).toString('base64')}`
    await say('/nowhere.html', { headers: { ...site, authorization } })
  }
  captcha.misbehave((res) => res.writeHead(500).end(CAPTCHA_SECRET))
  await post('/matchmaker/lobbies/find', wish(), bearer(public_token))
  captcha.misbehave((res) => void res.destroy())
  await post('/matchmaker/lobbies/find', wish(), bearer(public_token))
  captcha.misbehave(null)
  endpoint.answer((res) => res.writeHead(500).end('planted-endpoint-credential'))
  await post('/matchmaker/lobbies/find', wish(), bearer(public_token))
  endpoint.answer((res) => void res.destroy())
  await post('/matchmaker/lobbies/find', wish(), bearer(public_token))
  mail.refuses = true
  await post('/auth/identity/email/start-verification', { email: 'cid@example.com' })
  mail.hangUp()
  const told: string[] = []
  for (const [index] of ROLES.entries()) {
    const base = `http://127.0.0.1:${metrics + index}`
    await say('/metrics', { headers: bearer('planted-metrics-tokenx') }, base)
    for (const path of ['/metrics', '/health/ready']) {
      told.push((await say(path, { headers: bearer('planted-metrics-token') }, base)).text)
    }
  }
  for (const ray_id of ray_ids) {
    for (const operation of [getRayPerfLogs, explainRay]) {
      const answer = await client.call(operation, { params: { ray_id } }).catch(() => null)
      if (answer !== null) told.push(JSON.stringify(answer))
    }
  }
  const rows = await rowsOf(database_url)
  const postmaster = processesOf(folder).find(({ command }) => /postgres(\s|$).*-D/.test(command))
  assert.ok(postmaster !== undefined, 'there is a database to lose')
  process.kill(postmaster.pid, 'SIGKILL')
  await Promise.all(tokens.map((token) => say(`/cloud/games/${game_id}`, { headers: bearer(token) }).catch(() => null)))
  await post('/matchmaker/lobbies/find', wish(), bearer(public_token)).catch(() => null)
  await until(
    'the database is back',
    async () => (await say('/cloud/games', { headers: bearer(admin_token) })).status < 300,
  )
  process.kill(roleOf(folder, 'matchmaker')!, 'SIGKILL')
  await post('/matchmaker/players/connected', { player_token }, bearer(lobby_token)).catch(() => null)
  muster.kill('SIGINT')
  await muster.ended

  // What is kept where only the platform's own user reads it: that is what these are for.
  const own = ['keys/', 'admin-token']
  const places = new Map([
    ['what it printed', muster.output()],
    ['refusals', refusals.join('\n')],
    ['rays, metrics and health', told.join('\n')],
    ['rows', rows],
  ])
  for (const path of await filesBelow(folder)) {
    const name = relative(folder, path)
    if (!own.some((begin) => name.startsWith(begin))) places.set(name, await readFile(path, 'latin1'))
    if (!name.startsWith('keys/')) continue
    for (const [text] of readFileSync(path, 'utf8').matchAll(/[\w+/=-]{40,}/g)) planted.set(`a key of ${name}`, text)
  }
  assert.ok(rows.includes(version_id) && muster.output().includes('ready'))
  assert.ok(
    [...places.keys()].some((name) => name.startsWith('logs/')),
    [...places.keys()].join(),
  )
  assert.ok(refusals.length > 80 && told.length > 80 && planted.size > 25, 'there is much to look through')
  const leaks: string[] = []
  for (const [what, secret] of planted) {
    assert.ok(secret.length >= 8, what)
    for (const form of new Set([secret, Buffer.from(secret).toString('hex'), encodeURIComponent(secret)])) {
      for (const [place, text] of places) {
        const at = text.indexOf(form)
        // What is kept of a site's password.
        if (what === HASH && (place === 'rows' || place.startsWith('postgres/'))) continue
        if (at !== -1) leaks.push(`${what} in ${place}: ${text.slice(Math.max(0, at - 160), at + form.length)}`)
      }
    }
  }
  assert.deepEqual(leaks, [])
})
