// MUSTER_S3_ENDPOINT with https: the service proves who it is before anything is sent, or nothing is.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { createServer, type TLSSocket } from 'node:tls'
import { readConfig } from '../../src/config/read-config.ts'
import { examineStore } from '../../src/doctor/services.ts'
import { ObjectsAway } from '../../src/objects/s3/client.ts'
import { newGame } from '../cloud/steps.ts'
import { freeSettings, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { makeAuthority, type TestAuthority, type TestCertificate } from '../support/certificates.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { clientOf, s3Settings, startSmallS3 } from './service.ts'
import { deploySite, prepareSite, putBytes, visit } from './steps.ts'

const HOUR_MS = 3_600_000

type SecureService = {
  settings: Record<string, string>
  port: number
  /** For new connections; open ones are cut. */
  show: (certificate: TestCertificate) => void
  /** Bytes that clients sent after the handshake. */
  received: () => number
  /** Of names that begin with this. */
  keys: (prefix: string) => Promise<number>
}

async function start(t: TestContext, certificate: TestCertificate, host = 'localhost'): Promise<SecureService> {
  const plain = await startSmallS3(t)
  const plain_port = Number(new URL(plain.endpoint).port)
  const sockets = new Set<TLSSocket>()
  let received = 0
  const server = createServer(certificate, (socket) => {
    const upstream = connect(plain_port, '127.0.0.1')
    sockets.add(socket)
    socket.on('data', ({ length }: Buffer) => {
      received += length
    })
    socket.pipe(upstream).pipe(socket)
    for (const end of [socket, upstream]) {
      end.on('error', () => undefined)
      end.on('close', () => {
        socket.destroy()
        upstream.destroy()
        sockets.delete(socket)
      })
    }
  })
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const cut = (): void => sockets.forEach((socket) => void socket.destroy())
  t.after(() => {
    cut()
    server.close()
  })
  return {
    settings: s3Settings({ ...plain, endpoint: `https://${host}:${port}` }, 'secure'),
    port,
    show: (next) => {
      server.setSecureContext(next)
      cut()
    },
    received: () => received,
    keys: async (prefix) => {
      const query = { 'list-type': '2', prefix: `secure/${prefix}` }
      const { text } = await clientOf(t, plain, 'secure').send({ method: 'GET', key: null, query })
      return text.match(/<Key>/g)?.length ?? 0
    },
  }
}

async function fileOf(t: TestContext, authority: TestAuthority): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-s3-tls-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'authority.crt')
  await writeFile(file, authority.cert)
  return file
}

test('a service of a private authority is trusted with MUSTER_FETCH_AUTHORITIES, by the api and the edge', async (t) => {
  const authority = await makeAuthority()
  const service = await start(t, await authority.issue(['localhost']))
  const env = { ...service.settings, MUSTER_FETCH_AUTHORITIES: await fileOf(t, authority) }
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge', env })
  const host = await deploySite(platform, await newGame(platform), { 'index.html': Buffer.from('<h1>a game</h1>') })
  const { status, body } = await visit(platform, host, '/index.html')
  assert.equal(status, 200)
  assert.equal(body.toString(), '<h1>a game</h1>')
  assert.ok((await service.keys('objects/')) > 0)
  assert.ok(service.received() > 0)
})

test('MUSTER_FETCH_AUTHORITIES reaches each process of `muster start`; NODE_EXTRA_CA_CERTS changes nothing', async (t) => {
  const authority = await makeAuthority()
  const service = await start(t, await authority.issue(['localhost']))
  const folder = temporaryFolder(t)
  const settings = { ...(await freeSettings(folder)), ...service.settings }
  const file = await fileOf(t, authority)

  await placeCluster(folder)
  const refused = startMuster({ ...settings, NODE_EXTRA_CA_CERTS: file })
  await assert.rejects(refused.ready, /is of an authority that is not trusted.*MUSTER_FETCH_AUTHORITIES/s)
  assert.equal(service.received(), 0)

  const muster = startMuster({ ...settings, MUSTER_FETCH_AUTHORITIES: file })
  await muster.ready
  assert.ok(service.received() > 0)
  muster.signalGroup('SIGINT')
  await muster.ended
})

type Fault = { what: string; names: string[]; until_ms?: number; is_foreign?: true; expected: RegExp; remedy: string }

const FAULTS: Fault[] = [
  {
    what: 'of another authority',
    names: ['localhost'],
    is_foreign: true,
    expected:
      /certificate of the S3 service at localhost:\d+ is of an authority that is not trusted.*MUSTER_FETCH_AUTHORITIES/,
    remedy: 'export MUSTER_FETCH_AUTHORITIES=VALUE',
  },
  {
    what: 'for another host',
    names: ['s3.internal'],
    expected: /certificate of the S3 service at localhost:\d+ is for s3\.internal, not for localhost/,
    remedy: 'export MUSTER_S3_ENDPOINT=VALUE',
  },
  {
    what: 'that has expired',
    names: ['localhost'],
    until_ms: -HOUR_MS / 2,
    expected: /certificate of the S3 service at localhost:\d+ has expired/,
    remedy: 'export MUSTER_S3_ENDPOINT=VALUE',
  },
]

for (const { what, names, until_ms, is_foreign, expected, remedy } of FAULTS) {
  test(`a certificate ${what} is refused before a request is sent: at the start, by doctor, while it runs`, async (t) => {
    const authority = await makeAuthority()
    const issuer = is_foreign ? await makeAuthority() : authority
    const bad = await issuer.issue(names, until_ms === undefined ? {} : { until_ms })
    const good = await authority.issue(['localhost'])
    const service = await start(t, good)
    const env = { ...service.settings, MUSTER_FETCH_AUTHORITIES: await fileOf(t, authority) }
    const platform = await startPlatform(t, { roles: 'api,matchmaker', env })
    const site = await prepareSite(platform, await newGame(platform), { 'a.txt': Buffer.from('abc') })
    service.show(bad)
    const before = service.received()

    const response = await putBytes(platform, site.presigned[0]!, Buffer.from('abc'))
    assert.equal(response.status, 503)
    const refusal = (await response.json()) as { code: string; metadata: { reason: string } }
    assert.equal(refusal.code, 'API_NOT_AVAILABLE')
    assert.equal(refusal.metadata.reason, 'objects_away')
    const [finding] = await examineStore(readConfig(env), Date.now())
    assert.equal(finding?.status, 'failed')
    assert.match(finding.message, expected)
    assert.equal(finding.remedy, remedy)
    await assert.rejects(startPlatform(t, { roles: 'api,matchmaker', env }), expected)
    assert.equal(service.received(), before)

    // With a good certificate the same upload continues, without a restart.
    service.show(good)
    await until('the upload to be received', async () => {
      return (await putBytes(platform, site.presigned[0]!, Buffer.from('abc'))).status === 200
    })
  })
}

test('an https address of a service without TLS is refused with a sentence, and nothing is sent in plain', async (t) => {
  const plain = await startSmallS3(t)
  const client = clientOf(t, { ...plain, endpoint: plain.endpoint.replace('http:', 'https:') }, 'secure')
  const body = {
    content_length: 3,
    sha256: createHash('sha256').update('abc').digest('hex'),
    open: () => Buffer.from('abc'),
  }
  await assert.rejects(client.send({ method: 'PUT', key: 'objects/a', body }), (error) => {
    assert.ok(error instanceof ObjectsAway)
    assert.match((error.cause as Error).message, /S3 service at 127\.0\.0\.1:\d+ does not speak TLS.*http:\/\//)
    return true
  })
})
