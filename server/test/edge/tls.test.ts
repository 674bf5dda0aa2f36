import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, type TestContext, test } from 'node:test'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { WebSocket, WebSocketServer } from 'ws'
import { StartError } from '../../src/config/start-error.ts'
import { makeAuthority, type TestCertificate } from '../support/certificates.ts'
import { until } from '../support/until.ts'
import { RAW_HOST, rawClient, startBackend, startTestEdge } from './platform.ts'

const PRODUCTION = {
  MUSTER_DOMAIN_MAIN: 'muster.example',
  MUSTER_DOMAIN_CDN: 'pages.test',
  MUSTER_DOMAIN_JOB: 'lobbies.invalid',
}

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-tls-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function place(folder: string, name: string, { cert, key }: TestCertificate): Promise<void> {
  await writeFile(join(folder, `${name}.key`), key)
  await writeFile(join(folder, `${name}.crt`), cert)
}

const sockets = new Set<TLSSocket>()
after(() => {
  for (const socket of sockets) socket.destroy()
})

/** Does a handshake, verified against `ca` and the requested name. Rejects with the error that ended it. */
async function shake(port: number, servername: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', servername, ...options })
  sockets.add(socket)
  await once(socket, 'secureConnect')
  return socket
}

async function shownTo(port: number, servername: string, ca: string): Promise<string | undefined> {
  const socket = await shake(port, servername, { ca })
  const { subjectaltname } = socket.getPeerCertificate()
  socket.destroy()
  return subjectaltname
}

const refused = { code: 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE' }

async function get(port: number, options: { ca: string; host: string; servername?: string; path?: string }) {
  const { ca, host, servername = host, path = '/' } = options
  const req = request({ port, host: '127.0.0.1', servername, path, ca, headers: { host }, agent: false })
  req.end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  return { status: res.statusCode, headers: res.headers, body: await text(res) }
}

test('in development a local authority certifies this machine and nothing else', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const { https_port } = edge
  const keys = join(edge.ctx.config.data_dir, 'keys')
  const ca = await readFile(join(keys, 'local-authority.crt'), 'utf8')
  assert.equal((await stat(join(keys, 'local-authority.pem'))).mode & 0o777, 0o600)
  assert.match(new X509Certificate(ca).toString(), /BEGIN CERTIFICATE/)
  assert.doesNotMatch(ca, /PRIVATE/)

  await t.test('the main domain, every site and every lobby have a certificate for their own name', async () => {
    const game = await edge.game('puddle')
    await game.deploy(await game.site({ 'index.html': 'a site' }))
    const response = await get(https_port, { ca, host: 'localhost', path: '/cloud/bootstrap' })
    assert.equal(response.body, 'api')
    assert.equal(api.seen.at(-1)?.headers['x-forwarded-proto'], 'https')
    assert.equal((await get(https_port, { ca, host: 'puddle.cdn.localhost' })).body, 'a site')
    const lobby = await startBackend(t, 'lobby')
    const lobby_id = await edge.lobby({ game: lobby.port })
    const host = `${lobby_id}-game.lobby.local.localhost`
    assert.equal((await get(https_port, { ca, host })).body, 'lobby')
    assert.equal(lobby.seen.at(-1)?.headers['x-forwarded-proto'], 'https')
  })

  await t.test('a scheme that a client claims is not forwarded', async () => {
    const client = rawClient(t, edge.port)
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n')
    await client.end()
    assert.equal(api.seen.at(-1)?.headers['x-forwarded-proto'], 'http')
  })

  await t.test(
    'a client without a server name gets the certificate of localhost, and reaches only the main domain',
    async () => {
      const names = await shownTo(https_port, '', ca)
      assert.match(names ?? '', /DNS:localhost, IP Address:127\.0\.0\.1/)
      assert.equal((await get(https_port, { ca, host: '127.0.0.1', servername: '' })).status, 200)
      assert.equal((await get(https_port, { ca, host: 'puddle.cdn.localhost', servername: '' })).status, 421)
    },
  )

  await t.test('an unknown name gets no certificate', async () => {
    for (const name of ['muster.example', 'nothing.localhost', 'a.b.cdn.localhost']) {
      await assert.rejects(shake(https_port, name, { ca }), { code: 'ECONNRESET' }, name)
      await assert.rejects(shake(https_port, name, { ca, maxVersion: 'TLSv1.2' }), { code: 'ECONNRESET' }, name)
    }
  })

  await t.test('another process with the same folder has the same authority', async (t) => {
    const before = await readFile(join(keys, 'local-authority.pem'), 'utf8')
    const again = await startTestEdge(t, { env: { MUSTER_DATA: edge.ctx.config.data_dir } })
    assert.equal(await readFile(join(keys, 'local-authority.pem'), 'utf8'), before)
    assert.match((await shownTo(again.https_port, 'localhost', ca)) ?? '', /DNS:localhost/)
  })
})

test('TLS below 1.2 is refused, and a connection without TLS is closed', async (t) => {
  const edge = await startTestEdge(t)
  const ca = await readFile(join(edge.ctx.config.data_dir, 'keys', 'local-authority.crt'), 'utf8')
  const old = { ca, ciphers: 'DEFAULT@SECLEVEL=0' }
  for (const version of ['TLSv1', 'TLSv1.1'] as const) {
    await assert.rejects(shake(edge.https_port, 'localhost', { ...old, minVersion: version, maxVersion: version }), {
      code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    })
  }
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const socket = await shake(edge.https_port, 'localhost', { ca, minVersion: version, maxVersion: version })
    assert.equal(socket.getProtocol(), version)
    socket.destroy()
  }
  const plain = rawClient(t, edge.https_port)
  plain.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  assert.doesNotMatch(await plain.end(), /HTTP/)
})

test('a TLS connection serves only the host of its server name', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const ca = await readFile(join(edge.ctx.config.data_dir, 'keys', 'local-authority.crt'), 'utf8')
  const lobby = await startBackend(t, 'lobby')
  const host = `${await edge.lobby({ game: lobby.port })}-game.lobby.local.localhost`
  const socket = await shake(edge.https_port, host, { ca })
  let bytes = ''
  socket.setEncoding('latin1').on('data', (chunk) => {
    bytes += chunk
  })
  socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  await until('the request is refused', () => bytes.includes('"API_MISDIRECTED_REQUEST"'))
  assert.match(bytes, /^HTTP\/1\.1 421 /)
  socket.write(`GET / HTTP/1.1\r\nHost: ${host.toUpperCase()}.:8443\r\nConnection: close\r\n\r\n`)
  await once(socket, 'close')
  assert.match(bytes, /HTTP\/1\.1 200 [\s\S]*lobby/)
  assert.equal(api.seen.length, 0)
})

test('a WebSocket over TLS works both ways, and the lobby sees when it breaks', async (t) => {
  const edge = await startTestEdge(t)
  const ca = await readFile(join(edge.ctx.config.data_dir, 'keys', 'local-authority.crt'), 'utf8')
  const backend = await startBackend(t, 'lobby')
  const server = new WebSocketServer({ server: backend.server })
  const closed = Promise.withResolvers<number>()
  server.on('connection', (socket) => {
    socket.on('message', (data, is_binary) => socket.send(data, { binary: is_binary }))
    socket.on('close', (code) => closed.resolve(code))
  })
  t.after(() => server.close())
  const host = `${await edge.lobby({ game: backend.port })}-game.lobby.local.localhost`
  const open = () =>
    new WebSocket('wss://127.0.0.1/', {
      createConnection: () => connect({ port: edge.https_port, host: '127.0.0.1', servername: host, ca }),
      headers: { host },
      perMessageDeflate: false,
    })

  const client = open()
  await once(client, 'open')
  const large = Buffer.alloc(1024 * 1024, 7)
  client.send(large)
  const [echo] = (await once(client, 'message')) as [Buffer]
  assert.ok(echo.equals(large))
  client.terminate()
  assert.equal(await closed.promise, 1006)

  await t.test('a connection that the lobby breaks also breaks for the player', async () => {
    const player = open()
    await once(player, 'open')
    for (const socket of server.clients) socket.terminate()
    const [code] = (await once(player, 'close')) as [number]
    assert.equal(code, 1006)
  })
})

test('certificates from files are chosen by name, and read again when they change', async (t) => {
  const authority = await makeAuthority()
  const folder = await makeFolder(t)
  await place(folder, 'main', await authority.issue(['muster.example']))
  await mkdir(join(folder, 'sites'))
  const sites = await authority.issue(['*.pages.test'])
  await writeFile(join(folder, 'sites', 'fullchain.pem'), sites.cert)
  await writeFile(join(folder, 'sites', 'privkey.pem'), sites.key)
  await place(folder, 'old', await authority.issue(['over.pages.test', 'www.example'], { until_ms: -1 }))
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, {
    api_port: api.port,
    env: { ...PRODUCTION, MUSTER_TLS_CERTIFICATES: folder },
  })
  const { https_port } = edge
  const ca = authority.cert
  const keyOf = async (name: string) => {
    const socket = await shake(https_port, name, { ca })
    const { fingerprint256 } = socket.getPeerCertificate()
    socket.destroy()
    return fingerprint256
  }

  assert.equal(await shownTo(https_port, 'muster.example', ca), 'DNS:muster.example')
  assert.equal(await shownTo(https_port, 'MUSTER.example', ca), 'DNS:muster.example')
  assert.equal(await shownTo(https_port, 'puddle.pages.test', ca), 'DNS:*.pages.test')
  assert.equal((await get(https_port, { ca, host: 'muster.example' })).body, 'api')
  // Without a name, and with a name that no certificate covers, the client gets an alert and no other certificate.
  for (const name of ['', 'pages.test', 'a.b.pages.test', 'localhost', 'www.example', 'xn--bcher-kva.example']) {
    await assert.rejects(shake(https_port, name, { ca }), refused, name)
    await assert.rejects(shake(https_port, name, { ca, maxVersion: 'TLSv1.2' }), refused, name)
  }
  // An expired certificate does not take precedence over a valid one.
  assert.equal(await shownTo(https_port, 'over.pages.test', ca), 'DNS:*.pages.test')

  await t.test('a renewed pair is used without a restart, and a half-written one never is', async () => {
    const before = await keyOf('muster.example')
    const renewed = await authority.issue(['muster.example'])
    await writeFile(join(folder, 'main.crt'), renewed.cert)
    await writeFile(join(folder, 'new.key'), 'not a key')
    await writeFile(join(folder, 'new.crt'), 'not a certificate')
    await place(folder, 'second', await authority.issue(['second.pages.test']))
    await until(
      'the second is read',
      async () => (await shownTo(https_port, 'second.pages.test', ca)) === 'DNS:second.pages.test',
    )
    assert.equal(await keyOf('muster.example'), before, 'a certificate without its key changes nothing')
    await writeFile(join(folder, 'main.key'), renewed.key)
    await until('the renewed pair is used', async () => (await keyOf('muster.example')) !== before)
    assert.equal((await get(https_port, { ca, host: 'muster.example' })).body, 'api')
  })

  await t.test('a removed pair is no longer used', async () => {
    await rm(join(folder, 'sites', 'privkey.pem'))
    await until('the certificate is no longer used', async () => {
      try {
        ;(await shake(https_port, 'puddle.pages.test', { ca })).destroy()
        return false
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === refused.code
      }
    })
  })
})

test('a raw port with TLS uses only certificates of the job domain, whatever name the client requests', async (t) => {
  const authority = await makeAuthority()
  const folder = await makeFolder(t)
  const NAMES = ['muster.example', '*.pages.test', 'custom.example', 'lobbies.invalid']
  for (const name of NAMES) await place(folder, name.replace('*', 'any'), await authority.issue([name]))
  await place(folder, 'lobbies', await authority.issue(['*.lobby.local.lobbies.invalid']))
  // It covers all names and expires last, so it would be chosen first.
  const all = await authority.issue([...NAMES, '*.lobby.local.lobbies.invalid'], { until_ms: 7_200_000 })
  await place(folder, 'all', all)
  let connections = 0
  const lobby = createServer((socket) => {
    connections++
    socket.end('welcome')
  }).listen(0, '127.0.0.1')
  await once(lobby, 'listening')
  t.after(() => lobby.close())
  const edge = await startTestEdge(t, { env: { ...PRODUCTION, MUSTER_TLS_CERTIFICATES: folder } })
  const { lobby_id, number } = await edge.raw('tcp', (lobby.address() as AddressInfo).port, { protocol: 'tcp_tls' })
  const ca = authority.cert
  const own_host = `${lobby_id}-game.lobby.local.lobbies.invalid`
  const foreign = ['', 'localhost', 'muster.example', 'puddle.pages.test', 'muster-game-media.pages.test']
  for (const name of [
    ...foreign,
    'custom.example',
    'lobbies.invalid',
    'any.lobby.local.lobbies.invalid',
    `a.${own_host}`,
  ]) {
    await assert.rejects(shake(number, name, { ca }), name)
  }
  assert.equal(connections, 0)
  for (const name of [own_host, 'ports.lobby.local.lobbies.invalid']) {
    const socket = await shake(number, name, { ca })
    assert.equal(socket.getPeerCertificate().subjectaltname, 'DNS:*.lobby.local.lobbies.invalid')
    assert.equal(await text(socket), 'welcome')
  }
  assert.equal(connections, 2)
})

test('in development a raw port with TLS is certified for its own address and for names of lobbies', async (t) => {
  const lobby = createServer((socket) => socket.end('welcome')).listen(0, '127.0.0.1')
  await once(lobby, 'listening')
  t.after(() => lobby.close())
  const edge = await startTestEdge(t)
  const { lobby_id, number } = await edge.raw('tcp', (lobby.address() as AddressInfo).port, { protocol: 'tcp_tls' })
  const ca = await readFile(join(edge.ctx.config.data_dir, 'keys', 'local-authority.crt'), 'utf8')
  const host = RAW_HOST
  const nameless = await shake(number, '', { ca, host })
  assert.equal(nameless.getPeerCertificate().subjectaltname, `IP Address:${RAW_HOST}`)
  assert.equal(await text(nameless), 'welcome')
  const named = await shake(number, `${lobby_id}-game.lobby.local.localhost`, { ca, host })
  assert.equal(await text(named), 'welcome')
  for (const name of ['localhost', 'puddle.cdn.localhost', 'custom.example']) {
    await assert.rejects(shake(number, name, { ca, host }), name)
  }
})

test('in development raw ports and HTTP share no address', async (t) => {
  const api = await startBackend(t, 'api')
  const lobby = createServer((socket) => socket.end('welcome')).listen(0, '127.0.0.1')
  await once(lobby, 'listening')
  t.after(() => lobby.close())
  const edge = await startTestEdge(t, { api_port: api.port })
  const { number } = await edge.raw('tcp', (lobby.address() as AddressInfo).port)
  assert.equal(await rawClient(t, number, RAW_HOST).end(), 'welcome')
  for (const host of ['127.0.0.1', '::1']) assert.equal(await rawClient(t, number, host).end(), '', host)
  for (const port of [edge.port, edge.https_port]) {
    const client = rawClient(t, port, RAW_HOST)
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    assert.equal(await client.end(), '')
  }
  assert.equal(api.seen.length, 0)
})

test('a missing folder of certificates is a clear error at the start', async (t) => {
  const folder = join(await makeFolder(t), 'absent')
  await assert.rejects(
    startTestEdge(t, { env: { ...PRODUCTION, MUSTER_TLS_CERTIFICATES: folder } }),
    (error: Error) => {
      assert.ok(error instanceof StartError)
      assert.match(error.message, /MUSTER_TLS_CERTIFICATES names .*absent, which cannot be read \(ENOENT\)/)
      return true
    },
  )
})

test('without certificates production has no TLS', async (t) => {
  const edge = await startTestEdge(t, { env: PRODUCTION })
  assert.equal(edge.role.https_port, null)
})
