import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createDispatch } from 'node:http'
import { createServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { createSecureContext } from 'node:tls'
import { promisify } from 'node:util'
import { readConfig } from '../../src/config/read-config.ts'
import { readCertificateAuthorities } from '../../src/outbound/certificate-authorities.ts'
import { createDns } from '../../src/outbound/dns.ts'
import { parseNetworks } from '../../src/outbound/public-address.ts'
import { FetchFailure, type FetchRules, safeFetch } from '../../src/outbound/safe-fetch.ts'
import { makeAuthority, type TestAuthority } from '../support/certificates.ts'
import { type NameServer, startNameServer } from './name-server.ts'

let authority: TestAuthority
let folder: string
before(async () => {
  authority = await makeAuthority()
  folder = await mkdtemp(join(tmpdir(), 'muster-trust-'))
})
after(() => rm(folder, { recursive: true, force: true }))

async function startTls(t: TestContext, options: ServerOptions): Promise<number> {
  const server = createServer(options, (_req, res) => res.end('hello')).listen(0, '127.0.0.1')
  // Who does not believe the certificate says so and leaves.
  server.on('tlsClientError', () => {})
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

function rulesOf(names: NameServer): FetchRules {
  names.zones.set('game.example', { A: ['127.0.0.1'] })
  return {
    schemes: ['http', 'https'],
    names: createDns([names.address]),
    private_networks: parseNetworks(['127.0.0.1/32']),
    own_ports: [],
    trust: readCertificateAuthorities([authority.cert]),
  }
}

const fetchFrom = (port: number, rules: FetchRules) =>
  safeFetch({ url: `https://game.example:${port}/`, timeout_ms: 3_000, body_bytes_max: 100 }, rules)

test('a good certificate for the name is believed, and shown to the name that was asked', async (t) => {
  const rules = rulesOf(await startNameServer(t))
  const asked: string[] = []
  const port = await startTls(t, {
    ...(await authority.issue(['game.example'])),
    SNICallback: (name, done) => {
      asked.push(name)
      done(null)
    },
  })
  assert.equal((await fetchFrom(port, rules)).body.toString(), 'hello')
  assert.deepEqual(asked, ['game.example'])
})

test('a server that answers only who names a host answers names, and an address is a failed request', async (t) => {
  const rules = rulesOf(await startNameServer(t))
  const context = createSecureContext(await authority.issue(['game.example', '127.0.0.1']))
  const port = await startTls(t, { SNICallback: (_name, done) => done(null, context) })
  assert.equal((await fetchFrom(port, rules)).body.toString(), 'hello')
  const unnamed = safeFetch({ url: `https://127.0.0.1:${port}/`, timeout_ms: 3_000, body_bytes_max: 100 }, rules)
  await assert.rejects(unnamed, (error) => error instanceof FetchFailure && error.reason === 'tls')
})

test('a certificate that is not good is a failed request', async (t) => {
  const rules = rulesOf(await startNameServer(t))
  const stranger = await makeAuthority()
  const good = await authority.issue(['game.example'])
  const cases: Record<string, { options: ServerOptions; why: RegExp; trust?: FetchRules['trust'] }> = {
    expired: { options: await authority.issue(['game.example'], { until_ms: -1_000 }), why: /CERT_HAS_EXPIRED/ },
    'not valid yet': {
      options: await authority.issue(['game.example'], { from_ms: 60_000 }),
      why: /CERT_NOT_YET_VALID/,
    },
    'of another host': { options: await authority.issue(['other.example']), why: /ERR_TLS_CERT_ALTNAME_INVALID/ },
    'of the address, asked by name': { options: await authority.issue(['127.0.0.1']), why: /ALTNAME_INVALID/ },
    'of an unknown authority': {
      options: await stranger.issue(['game.example']),
      why: /UNABLE_TO_VERIFY|UNABLE_TO_GET/,
    },
    'good, but its authority is not believed': {
      options: good,
      why: /UNABLE_TO_VERIFY|UNABLE_TO_GET/,
      trust: readCertificateAuthorities([]),
    },
    'TLS 1.0': {
      options: { ...good, minVersion: 'TLSv1', maxVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' },
      why: /EPROTO|VERSION/,
    },
    'a chain of 16 KB and more': {
      options: { ...good, cert: good.cert + (await manyCertificates(stranger)) },
      why: /./,
    },
  }
  for (const [what, { options, why, trust }] of Object.entries(cases)) {
    await t.test(what, async (t) => {
      const port = await startTls(t, options)
      const call = fetchFrom(port, { ...rules, ...(trust && { trust }) })
      if (what.startsWith('a chain')) {
        // What is sent beside is of no use and does no harm: read, or refused for its length.
        await call.then(
          ({ body }) => assert.equal(body.toString(), 'hello'),
          (error: unknown) => assert.ok(error instanceof FetchFailure && error.reason === 'tls'),
        )
        return
      }
      await assert.rejects(call, (error: Error) => {
        assert.ok(error instanceof FetchFailure)
        assert.equal(error.reason, 'tls')
        assert.match(error.message, why)
        return true
      })
    })
  }
})

async function manyCertificates(authority: TestAuthority): Promise<string> {
  const CHAIN_BYTES_MIN = 64 * 1024
  const one = (await authority.issue(['filler.example'])).cert
  return one.repeat(Math.ceil(CHAIN_BYTES_MIN / one.length))
}

test('what the environment says of proxies and of trust is not heard', async (t) => {
  const names = await startNameServer(t)
  names.zones.set('game.example', { A: ['127.0.0.1'] })
  const port = await startTls(t, await authority.issue(['game.example']))
  let proxied = 0
  const proxy = createDispatch((_req, res) => {
    proxied++
    res.end('proxied')
  })
    .on('connect', (_req, socket) => {
      proxied++
      socket.destroy()
    })
    .listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.after(() => void proxy.close())
  const plain = createDispatch((_req, res) => res.end('direct')).listen(0, '127.0.0.1')
  await once(plain, 'listening')
  t.after(() => void plain.close())

  const ca = join(folder, 'authority.pem')
  await writeFile(ca, authority.cert)
  const proxy_url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      join(import.meta.dirname, 'fetch-program.ts'),
      names.address,
      `https://game.example:${port}/`,
      `http://game.example:${(plain.address() as AddressInfo).port}/`,
    ],
    {
      env: {
        NODE_USE_ENV_PROXY: '1',
        ...Object.fromEntries(
          ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].map((name) => [name, proxy_url]),
        ),
        NODE_EXTRA_CA_CERTS: ca,
        NODE_TLS_REJECT_UNAUTHORIZED: '0',
      },
    },
  )
  const [secure, direct] = JSON.parse(stdout) as { reason?: string; body?: string }[]
  assert.deepEqual(secure, { reason: 'tls' }, 'neither an authority of the environment is believed, nor everybody')
  assert.deepEqual(direct, { body: 'direct' })
  assert.equal(proxied, 0)
})

test('the platform does not start where TLS is switched off, and says which authorities it cannot read', async () => {
  assert.throws(() => readConfig({ NODE_TLS_REJECT_UNAUTHORIZED: '0' }), /NODE_TLS_REJECT_UNAUTHORIZED switches off/)
  const absent = join(folder, 'absent.pem')
  assert.throws(() => readConfig({ MUSTER_FETCH_AUTHORITIES: absent }), /cannot be read \(ENOENT/)
  const empty = join(folder, 'empty.pem')
  await writeFile(empty, 'nothing')
  assert.throws(() => readConfig({ MUSTER_FETCH_AUTHORITIES: empty }), /has no certificate/)
  const two = join(folder, 'two.pem')
  await writeFile(two, `# ours\n${authority.cert}\n${(await makeAuthority()).cert}`)
  assert.equal(readConfig({ MUSTER_FETCH_AUTHORITIES: two }).fetch_authorities.length, 2)
})
