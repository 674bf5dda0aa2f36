// A lobby's server is hostile, and a browser is sent to each of its ports under every host of the platform. It must get to
// see no cookie and no password that belongs to the hub, to a site or to a custom domain.
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { TLSSocket } from 'node:tls'
import {
  completeAccessTokenVerification,
  setNamespaceCdnAuthType,
  updateNamespaceCdnAuthUser,
} from '@musterhost/contract'
import { hash } from '@node-rs/bcrypt'
import type { BrowserContext, Page } from 'playwright-core'
import { mainUrl, mediaHost, publicUrl, rawPortsHost } from '../../src/config/addresses.ts'
import { newId } from '../../src/ids.ts'
import { insertLobby, insertRawLobby, RAW_HOST } from '../edge/platform.ts'
import { makeAuthority } from '../support/certificates.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { openBrowser } from './browser.ts'
import { deploySite } from './site.ts'

const CUSTOM = 'custom.example'
const PRODUCTION = {
  MUSTER_DOMAIN_MAIN: 'muster.example',
  MUSTER_DOMAIN_CDN: 'sites.example.net',
  MUSTER_DOMAIN_JOB: 'play.example.org',
}
const PASSWORD = 'site-password'
/** Values of cookies that pages set, none of them `Secure`: what a site does with its cookies is its own choice. */
const COOKIES = { site: 'site-secret', custom: 'custom-secret' }
const VISIT_MS_MAX = 5_000
const PAGE = '<!doctype html><title>lobby</title>'

/** A hostile server of a lobby. It speaks HTTP, and TLS where it is greeted so, with certificates it made itself. */
type Thief = { kind: string; port: number; seen: () => string }

async function startThief(t: TestContext, kind: string, names: readonly string[]): Promise<Thief> {
  const own = await (await makeAuthority()).issue(names)
  let seen = ''
  const sockets = new Set<Socket>()
  const serve = (socket: Socket, first?: Buffer): void => {
    let head = ''
    const take = (bytes: Buffer): void => {
      seen += bytes.toString('latin1')
      head += bytes.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      // A browser with a password for such a realm sends it.
      const asks = /^authorization:/im.test(head) || !head.startsWith('GET /asks') ? '200 OK' : '401 Unauthorized'
      const realm = 'WWW-Authenticate: Basic realm="Muster site", charset="UTF-8"\r\n'
      const headers = `Content-Type: text/html\r\nContent-Length: ${PAGE.length}\r\n${realm}Connection: close\r\n\r\n`
      socket.end(`HTTP/1.1 ${asks}\r\n${headers}${PAGE}`)
    }
    socket.on('error', () => {})
    socket.on('data', take)
    if (first !== undefined) take(first)
  }
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    socket.once('data', (first: Buffer) => {
      if (first[0] !== 0x16) {
        serve(socket, first)
        return
      }
      socket.pause()
      socket.unshift(first)
      serve(new TLSSocket(socket, { isServer: true, ...own }))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { kind, port: (server.address() as AddressInfo).port, seen: () => seen }
}

async function startDatagramThief(t: TestContext): Promise<Thief> {
  const socket = createSocket('udp4')
  let seen = ''
  socket.on('message', (datagram, { port, address }) => {
    seen += datagram.toString('latin1')
    socket.send(datagram, port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.after(() => socket.close())
  return { kind: 'udp', port: socket.address().port, seen: () => seen }
}

/** Certificates of the operator, and of a lobby's hosts apart from all others. */
async function productionEnv(t: TestContext): Promise<Record<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-stolen-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const { MUSTER_DOMAIN_MAIN: main, MUSTER_DOMAIN_CDN: cdn, MUSTER_DOMAIN_JOB: job } = PRODUCTION
  const authority = await makeAuthority()
  for (const [name, hosts] of [
    ['hub', [main, `*.${cdn}`, CUSTOM]],
    ['lobbies', [`*.lobby.local.${job}`]],
  ] as const) {
    const { cert, key } = await authority.issue(hosts)
    await writeFile(join(folder, `${name}.key`), key)
    await writeFile(join(folder, `${name}.crt`), cert)
  }
  return { ...PRODUCTION, MUSTER_TLS_CERTIFICATES: folder }
}

/** A person who is logged in at the hub and has been at a site behind a password and at a custom domain. */
async function becomeVictim(platform: Platform, context: BrowserContext): Promise<string[]> {
  const { config, db, listener } = platform.ctx
  const main = mainUrl(config)
  const said = await fetch(`${platform.api_url}${completeAccessTokenVerification.path}`, {
    method: completeAccessTokenVerification.method,
    headers: { 'content-type': 'application/json', origin: main },
    body: JSON.stringify({ access_token: platform.token }),
  })
  assert.equal(said.status, 200)
  const line = said.headers.getSetCookie()[0] ?? ''
  const { name = '', value = '' } = /^(?<name>[^=]+)=(?<value>[^;]+);/.exec(line)?.groups ?? {}
  const is_production = config.mode === 'production'
  assert.deepEqual([name.startsWith('__Host-'), /; Secure$/.test(line)], [is_production, is_production])
  // As the browser would keep what the hub said.
  await context.addCookies([{ name, value, url: main, httpOnly: true, sameSite: 'Lax', secure: is_production }])
  const page = await context.newPage()
  await page.goto(main)
  assert.deepEqual(
    (await context.cookies(main)).map((cookie) => cookie.value),
    [value],
  )

  const { game_id, namespace_id } = await deploySite(platform, 'puddle', { 'index.html': '<title>site</title>' })
  const params = { game_id, namespace_id }
  const password = await hash(PASSWORD, { cost: 4 })
  await platform.client.call(updateNamespaceCdnAuthUser, { params, body: { user: 'ada', password } })
  await platform.client.call(setNamespaceCdnAuthType, { params, body: { auth_type: 'basic' } })
  await db
    .insertInto('domains')
    .values({
      ...{ domain_id: newId(platform.ctx.now()), namespace_id, domain: CUSTOM, txt_value: 'n', cname_label: CUSTOM },
      ...{ verification_status: 'active', verification_errors: '[]' },
    })
    .execute()
  await listener.notify('namespaces', namespace_id)
  for (const [kind, host] of [
    ['site', `puddle.${config.domains.cdn}`],
    ['custom', CUSTOM],
  ] as const) {
    const origin = publicUrl(config, host)
    await page.goto(origin.replace('://', `://ada:${PASSWORD}@`))
    assert.equal(await page.title(), 'site')
    await page.evaluate(`document.cookie = 'progress=${COOKIES[kind]}; max-age=3600; domain=${host}'`)
    // The page hands the cookie to another process of the browser.
    await until('the browser keeps the cookie', async () =>
      (await context.cookies(origin)).some(({ value }) => value === COOKIES[kind]),
    )
  }
  await page.close()
  const basic = Buffer.from(`ada:${PASSWORD}`).toString('base64')
  return [value, PASSWORD, basic, ...Object.values(COOKIES)]
}

/** However it ends: the browser has sent what it sends. */
async function visit(page: Page, url: string): Promise<void> {
  await page.goto(url, { timeout: VISIT_MS_MAX, waitUntil: 'commit' }).catch(() => {})
}

const RUNS = [
  { where: 'on a laptop', envOf: async () => ({}), flags: [`--host-resolver-rules=MAP ${CUSTOM} 127.0.0.1`] },
  {
    where: 'in production',
    envOf: productionEnv,
    flags: ['--host-resolver-rules=MAP * 127.0.0.1'],
  },
]

for (const { where, envOf, flags } of RUNS) {
  test(`no port of a lobby gets a cookie or a password of anybody else, ${where}`, async (t) => {
    // The person clicks away every warning of the browser about certificates.
    const browser = await openBrowser(t, [...flags, '--ignore-certificate-errors'])
    if (browser === null) return
    const platform = await startPlatform(t, { roles: 'api,edge', env: await envOf(t) })
    const { ctx } = platform
    const { config } = ctx
    const { main, cdn, job } = config.domains
    const victims = [main, `puddle.${cdn}`, CUSTOM, mediaHost(config.domains)]
    const raw_host = config.mode === 'development' ? RAW_HOST : rawPortsHost(config.domains, 'local')

    const thieves = await Promise.all(
      ['tcp', 'tcp_tls', 'http'].map((kind) => startThief(t, kind, [...victims, raw_host])),
    )
    const [tcp, tcp_tls, http] = thieves as [Thief, Thief, Thief]
    const udp = await startDatagramThief(t)
    const numbers = [
      (await insertRawLobby(ctx, 'tcp', tcp.port)).number,
      (await insertRawLobby(ctx, 'tcp', tcp_tls.port, { protocol: 'tcp_tls' })).number,
      (await insertRawLobby(ctx, 'udp', udp.port)).number,
    ] as [number, number, number]
    const lobby_id = await insertLobby(ctx, { game: http.port })
    const lobby_host = `${lobby_id}-game.lobby.local.${job}`

    const context = await browser.newContext()
    const secrets = await becomeVictim(platform, context)
    const page = await context.newPage()
    const findStolen = () =>
      [...thieves, udp].flatMap(({ kind, seen }) =>
        secrets.filter((secret) => seen().includes(secret)).map((secret) => `${kind}: ${secret}`),
      )

    await t.test('every port is reached under its own host', async () => {
      for (const url of [
        `http://${raw_host}:${numbers[0]}/own`,
        `https://${raw_host}:${numbers[1]}/own`,
        publicUrl(config, lobby_host, 'http'),
      ]) {
        await page.goto(url, { waitUntil: 'domcontentloaded' })
        assert.equal(await page.title(), 'lobby', url)
      }
      for (const { kind, seen } of thieves) assert.match(seen(), /^GET \//, kind)
    })

    await t.test('a person who is sent there under another host takes nothing along', async () => {
      const ports = [...numbers, config.edge_http_port, config.edge_https_port]
      for (const host of [...victims, '127.0.0.1', '[::1]', raw_host, lobby_host, 'localhost']) {
        for (const port of ports) {
          for (const scheme of ['http', 'https']) {
            await visit(page, `${scheme}://${host}:${port}/asks`)
            assert.deepEqual(findStolen(), [], `${scheme}://${host}:${port}`)
          }
        }
      }
      await visit(page, `${mainUrl(config)}/lobbies/${lobby_id}/game/asks`)
      assert.deepEqual(findStolen(), [], 'the path route')
    })

    await t.test('nor does what a page of a lobby loads from there, connects to or posts', async () => {
      const own = await context.newPage()
      await own.goto(`http://${raw_host}:${numbers[0]}/own`)
      const targets = victims.flatMap((host) => numbers.map((number) => `${host}:${number}`))
      await own.evaluate(`Promise.all(${JSON.stringify(targets)}.flatMap((target) => [
        ...['http', 'https'].map((scheme) =>
          fetch(scheme + '://' + target, { mode: 'no-cors', credentials: 'include', method: 'POST' }).catch(() => {})),
        ...['ws', 'wss'].map((scheme) => new Promise((resolve) => {
          const socket = new WebSocket(scheme + '://' + target)
          socket.onerror = socket.onopen = resolve
        })),
      ]))`)
      assert.deepEqual(findStolen(), [])
    })
  })
}
