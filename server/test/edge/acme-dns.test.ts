// Wildcard certificates by DNS-01, with real servers: Pebble is the authority, and reads the challenges from Knot.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect } from 'node:tls'
import { validateGameVersion } from '@musterhost/contract'
import { ORDER_BACK_OFF_MS } from '../../src/cloud/certificates/certificates.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { newId } from '../../src/ids.ts'
import { updateText } from '../../src/outbound/dns-update.ts'
import { startNameServer } from '../outbound/name-server.ts'
import { lacking } from '../run/optional-programs.ts'
import { createDatabase } from '../support/database.ts'
import { freePorts } from '../support/free-ports.ts'
import { type Knot, startKnot } from '../support/knot.ts'
import { type Pebble, startPebble } from '../support/pebble.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { orderDueCertificates } from './certificate-runs.ts'
import { insertRawLobby } from './platform.ts'

const MAIN = 'muster.example'
const WILDCARD = '*.lobby.local.lobbies.test'
const PROOF = '_acme-challenge.lobby.local.lobbies.test'
/** Two thirds of this are less than the five minutes by which the clocks of a signed update may differ. */
const LIFETIME_S = 420
const PRODUCTION = { MUSTER_DOMAIN_MAIN: MAIN, MUSTER_DOMAIN_CDN: 'pages.test', MUSTER_DOMAIN_JOB: 'lobbies.test' }
const missing = lacking('knotd', 'pebble')

type Authorities = { knot: Knot; pebble: Pebble; edge_port: number; folder: string }

async function startAuthorities(t: TestContext): Promise<Authorities> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-acme-dns-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const server = ['@ NS ns', 'ns A 127.0.0.1', '@ A 127.0.0.1']
  const knot = await startKnot(t, {
    'lobbies.test': server,
    'pages.test': [...server, '* A 127.0.0.1', '_acme-challenge CNAME proofs-of-pages'],
    [MAIN]: server,
    'authority.example': server,
  })
  const [edge_port] = (await freePorts(1)) as [number]
  const pebble = await startPebble(t, {
    ...{ host: 'authority.example', dns_server: knot.address, http_port: edge_port, lifetime_s: LIFETIME_S },
  })
  return { knot, pebble, edge_port, folder }
}

function start(
  t: TestContext,
  { knot, pebble, edge_port }: Authorities,
  env: Record<string, string>,
  place: { database_url?: string; data_dir?: string } = {},
): Promise<Platform> {
  return startPlatform(t, {
    ...place,
    roles: 'api,edge',
    env: {
      ...PRODUCTION,
      MUSTER_EDGE_HTTP_PORT: String(edge_port),
      MUSTER_ADVERTISED_HTTPS_PORT: '443',
      MUSTER_ACME: pebble.directory_url,
      MUSTER_FETCH_AUTHORITIES: pebble.trusted,
      MUSTER_DNS_SERVERS: knot.address,
      MUSTER_ACME_DNS_CHECK: knot.address,
      ...env,
    },
  })
}

/** Returns the certificate for the host; null when the handshake is refused. */
async function shown(platform: Platform, host: string, ca: string, port = platform.ctx.config.edge_https_port) {
  const socket = connect({ port, host: '127.0.0.1', servername: host, ca })
  try {
    await once(socket, 'secureConnect')
    const { subjectaltname, fingerprint256 } = socket.getPeerCertificate()
    return { names: subjectaltname, fingerprint256 }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE') return null
    throw error
  } finally {
    socket.destroy()
  }
}

async function warningsOf({ client, game }: Platform): Promise<string[]> {
  const { game_id } = await game()
  const ports = { game: { protocol: 'https' as const } }
  const body = { display_name: 'draft', config: { matchmaker: { docker: { ports }, game_modes: { default: {} } } } }
  const { warnings } = await client.call(validateGameVersion, { params: { game_id }, body })
  return warnings.map(({ message }) => message)
}

const rowOf = ({ ctx }: Platform, host: string) =>
  ctx.db.selectFrom('certificates').selectAll().where('host', '=', host).executeTakeFirst()
const proofRows = ({ ctx }: Platform) => ctx.db.selectFrom('acme_challenges').select('host').execute()
const lobbyHost = ({ ctx }: Platform) => `${newId(ctx.now())}-game.lobby.local.lobbies.test`

test('hosts of lobbies get a wildcard certificate by a signed DNS update', {
  skip: missing ?? false,
}, async (t) => {
  const authorities = await startAuthorities(t)
  const { knot, pebble } = authorities
  const platform = await start(t, authorities, {
    MUSTER_ACME_DNS_SERVER: knot.address,
    MUSTER_ACME_DNS_KEY: knot.key_file,
    MUSTER_ACME_DNS_FOR: 'job,cdn',
  })
  const { ctx } = platform
  const ca = await pebble.root()

  await t.test('before the first request to a lobby', async () => {
    await until(
      'the wildcards',
      async () => (await rowOf(platform, WILDCARD))?.chain && (await rowOf(platform, '*.pages.test'))?.chain,
    )
    assert.equal((await shown(platform, lobbyHost(platform), ca))?.names, `DNS:${WILDCARD}`)
    assert.ok((await rowOf(platform, WILDCARD))?.private_key?.startsWith(ctx.seals.prefix(ctx.now())))
  })

  await t.test('the challenge is removed from the DNS', async () => {
    assert.deepEqual([await knot.texts(PROOF), await knot.texts('proofs-of-pages.pages.test')], [[], []])
    assert.deepEqual(await proofRows(platform), [])
  })

  await t.test('sites and raw ports use wildcards, and order no certificates of their own', async () => {
    const game = await platform.game()
    const site = `${game.name_id}.pages.test`
    assert.equal((await shown(platform, site, ca))?.names, 'DNS:*.pages.test')
    const server = createServer((socket) => socket.end('welcome')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => void server.close())
    const { number } = await insertRawLobby(ctx, 'tcp', (server.address() as AddressInfo).port, { protocol: 'tcp_tls' })
    const host = 'ports.lobby.local.lobbies.test'
    await until(
      'the raw port uses the wildcard',
      async () => (await shown(platform, host, ca, number))?.names === `DNS:${WILDCARD}`,
    )
    assert.equal(await shown(platform, site, ca, number), null, "a site's certificate is not shown there")
    // A row from before the wildcard.
    await ctx.db
      .insertInto('certificates')
      .values({ host, wish_ts: new Date(ctx.now()), next_ts: new Date(ctx.now()) })
      .execute()
    await orderDueCertificates(ctx)
    assert.deepEqual([await rowOf(platform, host), await rowOf(platform, site)], [undefined, undefined])
  })

  await t.test('the validation of a version returns no warning', async () => {
    assert.deepEqual(await warningsOf(platform), [])
  })

  await t.test('the main domain still gets its certificate by HTTP-01', async () => {
    await until('the certificate is used', async () => (await shown(platform, MAIN, ca))?.names === `DNS:${MAIN}`)
    assert.equal(await shown(platform, 'lobby.local.lobbies.test', ca), null, 'the wildcard does not cover it')
  })

  await t.test('it is renewed before it expires, and a challenge that a crash left is removed', async () => {
    const before = await rowOf(platform, WILDCARD)
    const old = await shown(platform, lobbyHost(platform), ca)
    assert.ok(before?.expire_ts)
    const left_ms = () => before.expire_ts!.getTime() - ctx.now()
    assert.ok(left_ms() <= LIFETIME_S * 1_000)
    await updateText({ server: knot.address, key: knot.key, now: ctx.now }, 'add', { name: PROOF, value: 'left' })
    const expire_ts = new Date(ctx.now() + 3_600_000)
    const left = { token: 'left', host: WILDCARD, key_authorization: `${PROOF} left`, expire_ts }
    await ctx.db.insertInto('acme_challenges').values(left).execute()

    await orderDueCertificates(ctx)
    assert.equal((await rowOf(platform, WILDCARD))?.chain, before.chain, 'too early')
    platform.advance(before.next_ts.getTime() - ctx.now())
    await orderDueCertificates(ctx)
    assert.ok(left_ms() > 0, 'the old one has not ended')
    const after = await rowOf(platform, WILDCARD)
    assert.deepEqual([after?.failure_count, after?.error], [0, null])
    assert.ok(after!.expire_ts!.getTime() > before.expire_ts.getTime())
    await until('the new certificate is used', async () => {
      const now = await shown(platform, lobbyHost(platform), ca)
      return now !== null && now.fingerprint256 !== old?.fingerprint256
    })
    assert.deepEqual([await knot.texts(PROOF), await proofRows(platform)], [[], []])
  })
})

test("the operator's program sets the challenges; while it fails, hosts of sites use their own certificates", {
  skip: missing ?? false,
}, async (t) => {
  const authorities = await startAuthorities(t)
  const { knot, pebble, folder } = authorities
  await chmod(folder, 0o755)
  const [calls_file, hook, broken] = ['calls', 'hook', 'broken'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const update = new URL('../../src/outbound/dns-update.ts', import.meta.url).href
  await writeFile(
    hook,
    `#!${process.execPath}
const { appendFileSync, existsSync } = await import('node:fs')
const { updateText } = await import(${JSON.stringify(update)})
const [action, name, value] = process.argv.slice(2)
appendFileSync(${JSON.stringify(calls_file)}, JSON.stringify({ action, name, value, env: Object.keys(process.env).sort() }) + '\\n')
if (existsSync(${JSON.stringify(broken)})) {
  console.error('the provider is closed')
  process.exit(3)
}
const updater = { server: ${JSON.stringify(knot.address)}, key: ${JSON.stringify(knot.key)}, now: Date.now }
await updateText(updater, action === 'present' ? 'add' : 'remove', { name, value })
`,
    { mode: 0o755 },
  )
  await writeFile(broken, '')
  const platform = await start(t, authorities, { MUSTER_ACME_DNS_HOOK: hook, MUSTER_ACME_DNS_FOR: 'job,cdn' })
  const { ctx } = platform
  type Call = { action: string; name: string; value: string; env: string[] }
  const calls = async (): Promise<Call[]> =>
    (await readFile(calls_file, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Call)
      .filter(({ name }) => name === PROOF)
  const ca = await pebble.root()

  await until('the order has failed once', async () => Boolean((await rowOf(platform, WILDCARD))?.error))
  const failed = await rowOf(platform, WILDCARD)
  assert.match(failed?.error ?? '', /hook .*hook present ended with exit code 3: the provider is closed/)
  assert.equal(failed?.failure_count, 1)
  assert.deepEqual(
    (await calls()).map(({ action }) => action),
    ['present', 'cleanup'],
    'it is cleaned up after a failure',
  )
  assert.equal(await shown(platform, lobbyHost(platform), ca), null)
  const { warnings } = await ctx.health.readiness()
  assert.match(warnings.join(), /certificate for \*\.lobby\.local\.lobbies\.test could not be ordered: .*closed/)
  assert.match((await warningsOf(platform)).join(), /Its order by DNS-01 has not succeeded yet/)
  await orderDueCertificates(ctx)
  assert.equal((await calls()).length, 2, 'it is not tried again at once')

  const media = 'muster-game-media.pages.test'
  await until(
    'the site has its own certificate',
    async () => (await shown(platform, media, ca))?.names === `DNS:${media}`,
  )

  await rm(broken)
  platform.advance(ORDER_BACK_OFF_MS[0]!)
  await orderDueCertificates(ctx)
  assert.equal((await rowOf(platform, WILDCARD))?.error, null)
  await until(
    'the wildcard is used',
    async () => (await shown(platform, lobbyHost(platform), ca))?.names === `DNS:${WILDCARD}`,
  )
  assert.equal((await shown(platform, media, ca))?.names, 'DNS:*.pages.test')
  const [, , left, present, cleanup, ...more] = await calls()
  assert.deepEqual([left?.action, present?.action, cleanup?.action, more], ['cleanup', 'present', 'cleanup', []])
  assert.equal(present?.name, PROOF)
  assert.match(present?.value ?? '', /^[A-Za-z0-9_-]{43}$/)
  assert.deepEqual([cleanup?.name, cleanup?.value], [present?.name, present?.value])
  assert.deepEqual(present?.env, ['LC_ALL', 'PATH', 'TZ'])
  assert.deepEqual([await knot.texts(PROOF), await proofRows(platform)], [[], []])
})

test('a stop does not wait for name servers: the record is removed, and the next start orders at once', {
  skip: missing ?? false,
  // Half of the time that name servers may take.
  timeout: 120_000,
}, async (t) => {
  const authorities = await startAuthorities(t)
  const { knot, pebble, folder } = authorities
  const behind = await startNameServer(t)
  const signed = { MUSTER_ACME_DNS_SERVER: knot.address, MUSTER_ACME_DNS_KEY: knot.key_file }
  const place = { database_url: await createDatabase(t), data_dir: join(folder, 'data') }
  await chmod(folder, 0o755)
  const first = await start(t, authorities, { ...signed, MUSTER_ACME_DNS_CHECK: behind.address }, place)
  await until('the platform waits for the name server', () => behind.questions.length >= 2)
  assert.equal((await knot.texts(PROOF)).length, 1)
  await first.close()
  assert.deepEqual(await knot.texts(PROOF), [])

  const second = await start(t, authorities, signed, place)
  const ca = await pebble.root()
  await until(
    'the wildcard is used',
    async () => (await shown(second, lobbyHost(second), ca))?.names === `DNS:${WILDCARD}`,
  )
  assert.equal((await rowOf(second, WILDCARD))?.failure_count, 0)
})

test('impossible settings of DNS-01 are refused', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-tsig-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const [key_file, weak] = [join(folder, 'good.key'), join(folder, 'weak.key')]
  await writeFile(key_file, `hmac-sha256:muster:${'A'.repeat(43)}=\n`)
  await writeFile(weak, 'hmac-sha256:muster:c2VjcmV0\n')
  const read = (env: Record<string, string>) =>
    readConfig({ ...PRODUCTION, MUSTER_ACME: 'https://authority.example/dir', ...env })
  const server = { MUSTER_ACME_DNS_SERVER: '192.0.2.1', MUSTER_ACME_DNS_KEY: key_file }
  const dns = read(server).acme?.dns
  assert.deepEqual([dns?.publisher.kind, dns?.domains], ['server', ['job']])
  const mistakes: [Record<string, string>, RegExp][] = [
    [{ MUSTER_ACME_DNS_SERVER: '192.0.2.1' }, /need each other/],
    [{ ...server, MUSTER_ACME_DNS_SERVER: 'ns.example' }, /not an address/],
    [{ ...server, MUSTER_ACME_DNS_SERVER: '192.0.2.1,192.0.2.2' }, /is one name server/],
    [{ ...server, MUSTER_ACME_DNS_KEY: join(folder, 'none') }, /none, which cannot be read \(ENOENT\)/],
    [{ ...server, MUSTER_ACME_DNS_KEY: weak }, /weak\.key, which has a secret of less than/],
    [{ ...server, MUSTER_ACME_DNS_HOOK: '/bin/true' }, /exclude each other/],
    [{ ...server, MUSTER_ACME_DNS_FOR: 'main' }, /must be of job, cdn/],
    [{ ...server, MUSTER_ACME: '' }, /need MUSTER_ACME/],
    [{ MUSTER_ACME_DNS_HOOK: 'hook' }, /absolute path/],
  ]
  for (const [env, expected] of mistakes) assert.throws(() => read(env), expected, JSON.stringify(env))
  const edge = read({ ...server, MUSTER_ROLES: 'edge', MUSTER_ACME_DNS_KEY: join(folder, 'none') }).acme?.dns
  assert.equal(edge?.publisher.kind === 'server' && edge.publisher.key, null, 'an edge reads no key')
})
