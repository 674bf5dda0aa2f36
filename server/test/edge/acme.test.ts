import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { connect } from 'node:tls'
import { createGameVersion, validateGameVersion } from '@musterhost/contract'
import { sql } from 'kysely'
import { backup, restore } from '../../src/backup/command.ts'
import { findCaaFault } from '../../src/cloud/certificates/caa.ts'
import {
  BUDGET_MS,
  DOMAIN_BUDGET_MS,
  ORDER_BACK_OFF_MS,
  orderCertificates,
} from '../../src/cloud/certificates/certificates.ts'
import { addCertificateRun } from '../../src/cloud/jobs.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { newId } from '../../src/ids.ts'
import { createDns } from '../../src/outbound/dns.ts'
import { startNameServer, type Zone } from '../outbound/name-server.ts'
import { ACME_HOST, type AcmeServer, startAcme } from '../support/acme-server.ts'
import { LEAST_SERVER, uploadBuild } from '../support/builds.ts'
import { makeAuthority } from '../support/certificates.ts'
import { createDatabase } from '../support/database.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { orderDueCertificates } from './certificate-runs.ts'
import { insertRawLobby } from './platform.ts'

const MAIN = 'muster.example'
/** How far ahead the order of a test is due: less than a run plans ahead. */
const ORDER_AHEAD_MS = 60_000

async function start(t: TestContext, env: Record<string, string> = {}) {
  const authority = await makeAuthority()
  const folder = await mkdtemp(join(tmpdir(), 'muster-acme-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const trusted = join(folder, 'authority.pem')
  await writeFile(trusted, authority.cert)
  const names = await startNameServer(t)
  names.zones.set(ACME_HOST, { A: ['127.0.0.1'] })
  let edge_port = 0
  const acme = await startAcme(t, { authority, edgePort: () => edge_port })
  /** The authority fetches challenges from the platform that was started last. */
  const startAnother = async (place: { database_url?: string; data_dir?: string } = {}): Promise<Platform> => {
    const platform = await startPlatform(t, {
      ...place,
      roles: 'api,edge',
      env: {
        MUSTER_DOMAIN_MAIN: MAIN,
        MUSTER_DOMAIN_CDN: 'pages.test',
        MUSTER_DOMAIN_JOB: 'lobbies.invalid',
        MUSTER_ADVERTISED_HTTPS_PORT: '443',
        MUSTER_ACME: acme.directory_url,
        MUSTER_ACME_EMAIL: 'operator@muster.example',
        MUSTER_FETCH_AUTHORITIES: trusted,
        MUSTER_DNS_SERVERS: names.address,
        ...env,
      },
    })
    edge_port = platform.ctx.config.edge_http_port
    return platform
  }
  return { platform: await startAnother(), startAnother, acme, names, authority, folder }
}

async function get(platform: Platform, host: string, path = '/') {
  const req = request({
    host: '127.0.0.1',
    port: platform.ctx.config.edge_http_port,
    path,
    headers: { host },
    agent: false,
  })
  req.end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  return { status: res.statusCode, location: res.headers.location, body: await text(res) }
}

/** Returns the certificate for the host; null when the handshake is refused. */
async function shown(
  platform: Platform,
  host: string,
  ca: string,
  port = platform.ctx.config.edge_https_port,
): Promise<{ names?: string; valid_to: string; fingerprint256: string } | null> {
  const socket = connect({ port, host: '127.0.0.1', servername: host, ca })
  try {
    await once(socket, 'secureConnect')
    const { subjectaltname, valid_to, fingerprint256 } = socket.getPeerCertificate()
    return { ...(subjectaltname !== undefined && { names: subjectaltname }), valid_to, fingerprint256 }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE') return null
    throw error
  } finally {
    socket.destroy()
  }
}

async function addDomains(platform: Platform, namespace_id: string, domains: readonly string[], status = 'active') {
  await platform.ctx.db
    .insertInto('domains')
    .values(
      domains.map((domain) => ({
        ...{ domain_id: newId(platform.ctx.now()), namespace_id, domain, txt_value: 'n', cname_label: domain },
        ...{ verification_status: status as 'active', verification_errors: '[]' },
      })),
    )
    .execute()
}

const rowOf = (platform: Platform, host: string) =>
  platform.ctx.db.selectFrom('certificates').selectAll().where('host', '=', host).executeTakeFirst()

const countOrders = (acme: AcmeServer, host: string) => acme.orders.filter((item) => item === host).length

test('the first request to a host of the platform orders its certificate, once', async (t) => {
  const { platform, acme, authority } = await start(t)
  const { ctx } = platform
  const ca = authority.cert

  await t.test('the main domain over http is served, gets its certificate, and is then redirected', async () => {
    assert.notEqual((await get(platform, MAIN, '/cloud/bootstrap')).status, 308)
    await until('the certificate is used', async () => (await shown(platform, MAIN, ca)) !== null)
    assert.equal((await shown(platform, MAIN, ca))?.names, `DNS:${MAIN}`)
    await until('the host is redirected', async () => (await get(platform, MAIN, '/cloud/bootstrap')).status === 308)
    assert.equal((await get(platform, MAIN, '/cloud/bootstrap')).location, `https://${MAIN}/cloud/bootstrap`)
    assert.equal(countOrders(acme, MAIN), 1)
  })

  await t.test('a verified custom domain, over https first', async () => {
    const game = await platform.game()
    await addDomains(platform, game.namespace_id, ['play.example'])
    await addDomains(platform, game.namespace_id, ['claimed.example'], 'pending')
    await until('the certificate is used', async () => (await shown(platform, 'play.example', ca)) !== null)
    assert.equal(countOrders(acme, 'play.example'), 1)
    assert.equal(acme.accounts.size, 1, 'one account for all')
  })

  await t.test('the host of the raw ports, whose certificate a raw port uses', async () => {
    const host = 'ports.lobby.local.lobbies.invalid'
    const server = createServer((socket) => socket.end('welcome')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const { port } = server.address() as AddressInfo
    const { number } = await insertRawLobby(ctx, 'tcp', port, { protocol: 'tcp_tls' })
    await until('the certificate is used', async () => (await shown(platform, host, ca, number)) !== null)
    assert.equal((await shown(platform, host, ca, number))?.names, `DNS:${host}`)
    assert.equal(await shown(platform, MAIN, ca, number), null)
    assert.equal(countOrders(acme, host), 1)
    assert.equal((await get(platform, host)).status, 404)
  })

  await t.test(
    'without a wildcard for lobbies an https port of a version is warned of: only its url works',
    async () => {
      const { game_id } = await platform.game()
      const ports = { game: {}, web: { protocol: 'http' as const }, raw: { protocol: 'tcp_tls' as const } }
      const files = { 'server.mjs': LEAST_SERVER }
      const image_id = await uploadBuild(platform.client, { api_url: platform.api_url, game_id, files })
      const docker = { image_id, args: ['node', 'server.mjs'], ports }
      const config = { matchmaker: { docker, game_modes: { default: {}, own: { docker } } } }
      const body = { display_name: 'ports', config }
      const validated = await platform.client.call(validateGameVersion, { params: { game_id }, body })
      assert.deepEqual(validated.errors, [])
      assert.deepEqual(
        validated.warnings.map(({ path, reason }) => [path.join('.'), reason]),
        [
          ['matchmaker.docker.ports.game', 'url_only'],
          ['matchmaker.game_modes.own.docker.ports.game', 'url_only'],
        ],
      )
      assert.match(validated.warnings[0]!.message, /port game only at its `url`.* lobbies in local\. .*DNS-01/)
      const created = await platform.client.call(createGameVersion, { params: { game_id }, body })
      assert.deepEqual(created.warnings, validated.warnings)
      const broken = { display_name: 'ports', config: { matchmaker: 1 } }
      const { errors, warnings } = await platform.client.call(validateGameVersion, {
        params: { game_id },
        body: broken,
      })
      assert.deepEqual([errors.length > 0, warnings], [true, []])
    },
  )

  await t.test('no certificate is ordered for a host that is not served', async () => {
    const strangers = ['claimed.example', 'stranger.example', 'nothing.pages.test', 'a--b.pages.test']
    const lobby = `${newId(ctx.now())}-game.lobby.local.lobbies.invalid`
    for (const host of [...strangers, lobby, 'localhost']) {
      assert.equal(await shown(platform, host, ca), null, host)
      await get(platform, host)
      assert.equal(await rowOf(platform, host), undefined, host)
    }
    // A row for a host that is not served when it is due is deleted.
    const now = new Date(ctx.now())
    const not_served = ['stranger.example', '*.lobby.local.lobbies.invalid', '*.pages.test']
    await ctx.db
      .insertInto('certificates')
      .values(not_served.map((host) => ({ host, wish_ts: now, next_ts: now })))
      .execute()
    await orderDueCertificates(ctx)
    for (const host of not_served) assert.equal(await rowOf(platform, host), undefined, host)
    assert.deepEqual([...new Set(acme.orders)].sort(), [MAIN, 'play.example', 'ports.lobby.local.lobbies.invalid'])
  })

  await t.test('keys are sealed in the database', async () => {
    const { rows } = await sql<{ line: string }>`
      select c::text as line from certificates c union all select a::text from acme_accounts a`.execute(ctx.db)
    assert.equal(rows.length, 4)
    for (const { line } of rows) assert.doesNotMatch(line, /PRIVATE KEY/)
    assert.ok((await rowOf(platform, MAIN))?.private_key?.startsWith(ctx.seals.prefix(ctx.now())))
  })

  await t.test('a challenge is served for its own token and host, until it expires', async () => {
    const expire_ts = new Date(ctx.now() + 60_000)
    const row = { token: 'abc_DEF-1', host: 'play.example', key_authorization: 'abc_DEF-1.thumb', expire_ts }
    await ctx.db.insertInto('acme_challenges').values(row).execute()
    const asked = (host: string, token: string) => get(platform, host, `/.well-known/acme-challenge/${token}`)
    assert.deepEqual(await asked('play.example', row.token), {
      status: 200,
      location: undefined,
      body: row.key_authorization,
    })
    const wrong = [
      '',
      'abc',
      '../acme-challenge/abc_DEF-1',
      '..%2f..%2fetc%2fpasswd',
      `${row.token}/`,
      `${row.token}?x`,
      'a'.repeat(200),
    ]
    for (const token of wrong) assert.notEqual((await asked('play.example', token)).status, 200, token)
    for (const host of [MAIN, 'other.pages.test'])
      assert.notEqual((await asked(host, row.token)).body, row.key_authorization, host)
    platform.advance(61_000)
    assert.notEqual((await asked('play.example', row.token)).status, 200)
    for (const token of acme.tokens)
      assert.notEqual((await asked(MAIN, token)).status, 200, 'it is taken away afterwards')
  })

  await t.test('a certificate is renewed after two thirds of its lifetime, and the new one is used', async () => {
    const before = await rowOf(platform, MAIN)
    assert.ok(before?.expire_ts)
    platform.advance((before.expire_ts.getTime() - ctx.now()) * 0.6)
    await orderDueCertificates(ctx)
    assert.equal(countOrders(acme, MAIN), 1)
    platform.advance((before.expire_ts.getTime() - ctx.now()) * 0.2)
    await orderDueCertificates(ctx)
    assert.equal(countOrders(acme, MAIN), 2)
    const after = await rowOf(platform, MAIN)
    assert.notEqual(after?.private_key, before.private_key)
    assert.equal(after?.failure_count, 0)
    assert.notEqual(await shown(platform, MAIN, ca), null)
  })
})

test('a restored platform uses the same certificate, orders none, and renews with the same account', async (t) => {
  const { platform, startAnother, acme, authority, folder } = await start(t)
  const ca = authority.cert
  await get(platform, MAIN)
  await until('the certificate is used', async () => (await shown(platform, MAIN, ca)) !== null)
  const before = await shown(platform, MAIN, ca)
  const taken = join(folder, 'backup')
  await backup({ MUSTER_DATA: platform.data_dir, DATABASE_URL: platform.ctx.config.database_url! }, taken)
  await platform.close()

  const place = { database_url: await createDatabase(t), data_dir: join(folder, 'restored') }
  await restore({ MUSTER_DATA: place.data_dir, DATABASE_URL: place.database_url }, taken)
  const restored = await startAnother(place)
  assert.deepEqual(await shown(restored, MAIN, ca), before)
  assert.equal((await get(restored, MAIN, '/cloud/bootstrap')).status, 308)
  await orderDueCertificates(restored.ctx)
  assert.equal(countOrders(acme, MAIN), 1)
  const row = await rowOf(restored, MAIN)
  assert.ok(row?.expire_ts)
  restored.advance((row.expire_ts.getTime() - restored.ctx.now()) * 0.8)
  await orderDueCertificates(restored.ctx)
  // The platform's own run may have begun the order a moment before.
  await until('the certificate is ordered again', () => countOrders(acme, MAIN) === 2)
  await until(
    'the new certificate is used',
    async () => (await shown(restored, MAIN, ca))?.fingerprint256 !== before?.fingerprint256,
  )
  assert.equal(countOrders(acme, MAIN), 2)
  assert.equal(acme.accounts.size, 1)
})

test('an order that is requested during a run does not wait for the next planned run', async (t) => {
  const { ctx } = (await start(t)).platform
  const nextRun = async (): Promise<number | undefined> => {
    const { rows } = await sql<{ run_at: Date }>`
      select run_at from graphile_worker.jobs where key = 'certificates' and locked_at is null`.execute(ctx.db)
    return rows[0]?.run_at.getTime()
  }
  await until(
    'the first run has planned the next one',
    async () => ((await nextRun()) ?? 0) > ctx.now() + ORDER_AHEAD_MS,
  )
  // At its start the platform itself may request a run a moment later, which comes first.
  await until('the run keeps the time of the request', async () => {
    const request_ms = ctx.now() + ORDER_AHEAD_MS
    await addCertificateRun(ctx.db, request_ms, 'request')
    await orderCertificates(ctx)
    return (await nextRun()) === request_ms
  })
})

test('a failed order is reported, and retried after growing pauses', async (t) => {
  const { platform, acme, names, authority } = await start(t)
  const { ctx } = platform
  acme.fails.add(MAIN)
  await get(platform, MAIN)
  await until('the order has failed once', async () => Boolean((await rowOf(platform, MAIN))?.error))
  assert.equal((await rowOf(platform, MAIN))?.failure_count, 1)
  for (const [index, pause_ms] of ORDER_BACK_OFF_MS.slice(0, 2).entries()) {
    const failures = index + 1
    platform.advance(pause_ms / 2)
    await orderDueCertificates(ctx)
    assert.equal(countOrders(acme, MAIN), failures, 'too early')
    platform.advance(pause_ms / 2)
    await orderDueCertificates(ctx)
    assert.equal((await rowOf(platform, MAIN))?.failure_count, failures + 1)
  }
  acme.fails.clear()
  platform.advance(ORDER_BACK_OFF_MS[2]!)
  await orderDueCertificates(ctx)
  await until('the certificate is used', async () => (await shown(platform, MAIN, authority.cert)) !== null)
  const row = await rowOf(platform, MAIN)
  assert.deepEqual([row?.failure_count, row?.error], [0, null])

  await t.test('CAA records that forbid an order are named, and the authority is not asked', async () => {
    const game = await platform.game()
    const issue = (...values: string[]): Zone => ({ CAA: values.map((value) => ({ tag: 'issue', value })) })
    const rules: Record<string, { zone: Zone; error: string | null }> = {
      'play.forbidden.test': {
        zone: issue('other.test', 'third.test; account=1'),
        error:
          'The CAA records of forbidden.test allow only other.test, third.test to certify play.forbidden.test.' +
          ` Add the record: forbidden.test. CAA 0 issue "${ACME_HOST}"`,
      },
      'play.closed.test': {
        zone: issue(';'),
        error:
          'The CAA records of closed.test allow no authority to certify play.closed.test.' +
          ` Add the record: closed.test. CAA 0 issue "${ACME_HOST}"`,
      },
      'play.allowed.test': {
        zone: issue('other.test', `${ACME_HOST.toUpperCase()} ; validationmethods=http-01`),
        error: null,
      },
      'play.reporting.test': { zone: { CAA: [{ tag: 'iodef', value: 'mailto:a@b.test' }] }, error: null },
      'play.silent.test': { zone: 'SERVFAIL', error: null },
    }
    for (const [host, { zone, error }] of Object.entries(rules)) {
      names.zones.set(host.slice('play.'.length), zone)
      await addDomains(platform, game.namespace_id, [host])
      const wish_ts = new Date(ctx.now())
      await ctx.db.insertInto('certificates').values({ host, wish_ts, next_ts: wish_ts }).execute()
      await orderDueCertificates(ctx)
      assert.equal((await rowOf(platform, host))?.error, error)
      assert.equal(countOrders(acme, host), error === null ? 1 : 0)
    }
    // The closest domain that has records decides.
    names.zones.set('play.forbidden.test', issue(ACME_HOST))
    platform.advance(ORDER_BACK_OFF_MS[0]!)
    await orderDueCertificates(ctx)
    assert.equal((await rowOf(platform, 'play.forbidden.test'))?.error, null)
  })
})

test('CAA records for wildcards count for wildcards only, and before the others', async (t) => {
  const names = await startNameServer(t)
  const dns = createDns([names.address])
  const [issue, wild] = [ACME_HOST, 'other.test']
  names.zones.set('zone.test', {
    CAA: [
      { tag: 'issue', value: issue },
      { tag: 'issuewild', value: wild },
    ],
  })
  assert.equal(await findCaaFault(dns, 'a.zone.test', [ACME_HOST]), null)
  assert.match(
    (await findCaaFault(dns, '*.zone.test', [ACME_HOST]))!,
    /only other\.test .*zone\.test\. CAA 0 issuewild/,
  )
  assert.equal(await findCaaFault(dns, '*.zone.test', ['x.test', wild]), null)
  assert.equal(await findCaaFault(dns, '*.zone.test', []), null, 'an authority that names no identity')
})

test('a thousand hosts at once stay within the limits of the authority', async (t) => {
  const { platform, acme } = await start(t, { MUSTER_ACME_ORDERS_MAX: '4', MUSTER_ACME_DOMAIN_ORDERS_MAX: '3' })
  const { ctx } = platform
  const game = await platform.game()
  const own = Array.from({ length: 996 }, (_, index) => `d${index}.example`)
  const together = Array.from({ length: 4 }, (_, index) => `d${index}.together.net`)
  await addDomains(platform, game.namespace_id, [...own, ...together])
  const wish_ts = new Date(ctx.now())
  const wish = (host: string, next_ts: Date) => ({ host, wish_ts, next_ts })
  // Hosts below the same domain come first.
  await ctx.db
    .insertInto('certificates')
    .values([...together.map((host) => wish(host, new Date(0))), ...own.map((host) => wish(host, wish_ts))])
    .execute()
  await Promise.all([orderCertificates(ctx), orderCertificates(ctx)])
  await orderDueCertificates(ctx)
  assert.equal(acme.orders.length, 4, 'as many as three hours allow')

  platform.advance(BUDGET_MS + 1)
  await orderDueCertificates(ctx)
  assert.equal(acme.orders.length, 8)
  assert.equal(new Set(acme.orders).size, 8, 'none of them twice')
  assert.equal(
    acme.orders.filter((host) => host.endsWith('.together.net')).length,
    3,
    'as many below one domain as a week allows',
  )
  const held = await ctx.db
    .selectFrom('certificates')
    .select(['next_ts', 'error'])
    .where('host', 'like', '%.together.net')
    .where('chain', 'is', null)
    .executeTakeFirstOrThrow()
  assert.match(held.error ?? '', /Enough has been ordered/)
  assert.ok(held.next_ts.getTime() - ctx.now() > DOMAIN_BUDGET_MS - 2 * BUDGET_MS)
})

test('impossible settings of ACME are refused', () => {
  const production = { MUSTER_DOMAIN_MAIN: MAIN, MUSTER_DOMAIN_CDN: 'pages.test', MUSTER_DOMAIN_JOB: 'lobbies.invalid' }
  assert.throws(() => readConfig({ ...production, MUSTER_ACME: 'http://acme.example/' }), /must begin with https/)
  assert.throws(() => readConfig({ MUSTER_ACME: 'https://acme.example/' }), /no authority certifies localhost/)
  assert.throws(() => readConfig({ ...production, MUSTER_ACME_EMAIL: 'a b' }), /MUSTER_ACME_EMAIL/)
})
