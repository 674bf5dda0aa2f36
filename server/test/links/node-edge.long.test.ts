// The edge of a joined node serves what the platform's own edge serves: proofs of certificates, certificates, sites, the API.
import assert from 'node:assert'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { connect } from 'node:tls'
import { callLink } from '../../src/wire/link-call.ts'
import { insertGame } from '../edge/platform.ts'
import { startNameServer } from '../outbound/name-server.ts'
import { ACME_HOST, startAcme } from '../support/acme-server.ts'
import { makeAuthority } from '../support/certificates.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { queryAs, startEdgeOf, startNode } from './node.ts'

const MAIN = 'muster.example'
const PUBLIC_HOST = 'attic.muster.example'

test('an edge serves the proof of a certificate that another node orders, the certificate, sites and the API', async (t) => {
  const { platform, certificate_authority, setPort } = await openPlatform(t)
  const node = await startNode(t, platform, 'attic', ['edge'])
  const edge = await startEdgeOf(t, node, { MUSTER_EDGE_PUBLIC_HOST: PUBLIC_HOST })
  const { http_port, https_port } = edge
  // The authority reaches this edge only.
  setPort(http_port)
  const shownFor = (host: string) => shown(https_port, host, certificate_authority)

  assert.match(await get(http_port, MAIN, '/cloud/bootstrap'), /domains/)
  assert.strictEqual(await shownFor(MAIN), null)
  await until('the certificate of the main domain', async () => (await shownFor(MAIN)) !== null)
  assert.strictEqual(await shownFor(MAIN), `DNS:${MAIN}`)

  assert.match(await get(http_port, PUBLIC_HOST, '/cloud/bootstrap'), /This host has lobbies only/)
  await until('the certificate of the host of the edge', async () => (await shownFor(PUBLIC_HOST)) !== null)

  const game = await insertGame(platform.ctx, 'game')
  await game.deploy(await game.site({ 'index.html': 'the page', 'large.bin': Buffer.alloc(3_000_000, 'x') }))
  assert.strictEqual(await get(http_port, 'game.pages.test', '/'), 'the page')
  assert.strictEqual((await get(http_port, 'game.pages.test', '/large.bin')).length, 3_000_000)
  await edge.stop()
})

test('the edge of a stolen node has no secret of a game, no other node, and no key of tokens but that of players', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const [edge, runner] = [await startNode(t, platform, 'attic', ['edge']), await startNode(t, platform, 'cellar')]
  const as = (statement: string) => queryAs(edge.database_url, statement)
  for (const table of ['tokens', 'users', 'sessions', 'identities', 'audit_events', 'journal', 'acme_accounts']) {
    await assert.rejects(as(`select * from ${table} limit 1`), /permission denied|does not exist/, table)
  }
  await assert.rejects(as('select secrets from versions'), /permission denied/)
  await assert.rejects(as('update lobbies set stop_ts = now()'), /permission denied/)
  await assert.rejects(as('insert into lobby_runs (lobby_id) select lobby_id from lobbies'), /permission denied/)
  const register = (node_id: string) =>
    as(`insert into edges (edge_id, node_id) values (gen_random_uuid(), '${node_id}')`)
  await register('attic')
  await assert.rejects(register('cellar'), /row-level security/)
  assert.deepStrictEqual((await as('select node_id from edges')).rows, [{ node_id: 'attic' }])

  const keysOf = async (path: string) => {
    const response = await callLink(path, { method: 'POST', path: '/edge-keys', body: '{}' })
    return { status: response.statusCode, body: await text(response) }
  }
  const keys = await keysOf(edge.sockets.platform_path)
  const { player_keys } = JSON.parse(keys.body) as { player_keys: { algorithm: string }[] }
  assert.deepStrictEqual([...new Set(player_keys.map(({ algorithm }) => algorithm))], ['hmac-sha256'])
  assert.strictEqual((await keysOf(runner.sockets.platform_path)).status, 404)
})

async function openPlatform(t: TestContext) {
  const authority = await makeAuthority()
  const folder = await mkdtemp(join(tmpdir(), 'muster-acme-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const trusted = join(folder, 'authority.pem')
  await writeFile(trusted, authority.cert)
  const names = await startNameServer(t)
  names.zones.set(ACME_HOST, { A: ['127.0.0.1'] })
  let port = 0
  const acme = await startAcme(t, { authority, edgePort: () => port })
  const platform = await startPlatform(t, {
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
    },
  })
  return {
    platform,
    certificate_authority: authority.cert,
    setPort: (to: number) => {
      port = to
    },
  }
}

async function get(port: number, host: string, path: string): Promise<string> {
  const sent = request({ host: '127.0.0.1', port, path, headers: { host }, agent: false }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return text(response)
}

/** The names in the certificate for the host; null when the handshake is refused. */
async function shown(port: number, host: string, ca: string): Promise<string | null> {
  const socket = connect({ port, host: '127.0.0.1', servername: host, ca })
  try {
    await once(socket, 'secureConnect')
    return socket.getPeerCertificate().subjectaltname ?? ''
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE') return null
    throw error
  } finally {
    socket.destroy()
  }
}
