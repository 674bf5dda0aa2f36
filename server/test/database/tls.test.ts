// DATABASE_URL with sslmode: connections are encrypted and the server is who the URL says, or there is no connection.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type ClientHttp2Stream, connect as connectHttp2, createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import pino from 'pino'
import { connectAlone, disconnect } from '../../src/backup/source.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { startSentence } from '../../src/config/start-error.ts'
import { connect } from '../../src/database/connect.ts'
import { createListener } from '../../src/database/listen.ts'
import { Primary } from '../../src/database/primary.ts'
import { examineDatabase } from '../../src/doctor/database.ts'
import { bridgeDatabase } from '../../src/links/platform/database-bridge.ts'
import { makeAuthority, type TestAuthority, type TestCertificate } from '../support/certificates.ts'
import { until } from '../support/until.ts'
import { silent, undoAfter } from './harness.ts'
import { Standbys } from './standbys.ts'

const HOUR_MS = 3_600_000
const MODES = ['require', 'verify-ca', 'verify-full'] as const

let cluster: Standbys
let folder: string
let authority: TestAuthority
/** Of the names by which the servers are reached here. */
let good: TestCertificate
/** Files of the authority of the servers, and of another one. */
let root: string
let foreign_root: string

before(async () => {
  cluster = await Standbys.start(2)
  folder = await mkdtemp(join(tmpdir(), 'muster-database-tls-'))
  const [own, foreign] = await Promise.all([makeAuthority(), makeAuthority()])
  authority = own
  good = await own.issue(['localhost', '127.0.0.1'])
  root = join(folder, 'root.crt')
  foreign_root = join(folder, 'foreign.crt')
  await writeFile(root, own.cert)
  await writeFile(foreign_root, foreign.cert)
  await offer(good)
})
after(async () => {
  await cluster.stop()
  await rm(folder, { recursive: true, force: true })
})

async function offer(certificate: TestCertificate | null): Promise<void> {
  for (const index of [cluster.primary, ...cluster.standbys]) await cluster.offerTls(index, certificate)
}

/** One server, by its name. */
function urlOf(parameters: string, host = 'localhost'): string {
  return `${cluster.urlOf(cluster.primary).replace('127.0.0.1', host)}?${parameters}`
}

type Session = { application_name: string; ssl: boolean; version: string | null }

/** All connections to the primary whose name has this beginning, as PostgreSQL sees them. */
async function sessionsOf(application_name: string): Promise<Session[]> {
  return cluster.ask<Session>(
    cluster.primary,
    `select application_name, ssl, version from pg_stat_ssl join pg_stat_activity using (pid)
     where application_name like $1 || '%'`,
    [application_name],
  )
}

function openPool(t: TestContext, url: string, application_name = 'tls pool') {
  const connection = connect({ url, application_name, log: silent })
  undoAfter(t, connection.close)
  return connection.pool
}

/** The messages of a listener's failures. */
function listenAt(t: TestContext, url: string): { failures: string[]; wakes: string[] } {
  const failures: string[] = []
  const wakes: string[] = []
  const log = pino(
    { level: 'warn' },
    { write: (line: string) => void failures.push((JSON.parse(line) as { err: { message: string } }).err.message) },
  )
  const listener = createListener({ url, log })
  listener.on('lobbies', (payload) => void wakes.push(payload))
  undoAfter(t, () => listener.close())
  return { failures, wakes }
}

for (const sslmode of MODES) {
  test(`with sslmode=${sslmode} and the right authority the pool, LISTEN and a backup are encrypted`, async (t) => {
    const url = urlOf(`sslmode=${sslmode}&sslrootcert=${root}`)
    const pool = openPool(t, url)
    const { wakes } = listenAt(t, url)
    const backup = await connectAlone(url)
    undoAfter(t, () => disconnect(backup))
    await pool.query('select 1')
    await until('listening to begin', () => wakes.length === 1)
    for (const name of ['tls pool', 'muster-listen', 'muster backup']) {
      const sessions = await sessionsOf(name)
      assert.deepEqual(
        sessions.map(({ ssl, version }) => ({ ssl, version })),
        [{ ssl: true, version: 'TLSv1.3' }],
        name,
      )
    }
  })
}

test('of several servers each is asked over TLS, and the primary is used over TLS', async (t) => {
  const url = `${cluster.url}&sslmode=verify-full&sslrootcert=${root}`
  const pool = openPool(t, url)
  const { wakes } = listenAt(t, url)
  await pool.query('select 1')
  await until('listening to begin', () => wakes.length === 1)
  for (const name of ['tls pool', 'muster-listen', 'muster primary']) {
    const sessions = await sessionsOf(name)
    assert.ok(sessions.length > 0, name)
    assert.ok(
      sessions.every(({ ssl }) => ssl),
      `${name}: ${JSON.stringify(sessions)}`,
    )
  }
})

test('a process that has connected keeps its authorities while the file is replaced', async (t) => {
  const path = join(folder, 'replaced.crt')
  await writeFile(path, authority.cert)
  const pool = openPool(t, urlOf(`sslmode=verify-full&sslrootcert=${path}`), 'tls replaced')
  await pool.query('select 1')
  await rm(path)
  const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()])
  for (const client of clients) client.release()
  assert.equal((await sessionsOf('tls replaced')).length, 3)
})

type Fault = {
  what: string
  /** What the server shows; absent: the good certificate. */
  certificate?: () => Promise<TestCertificate | null>
  host?: string
  authorities?: () => string | null
  expected: RegExp
  remedy: RegExp
}

const FAULTS: Fault[] = [
  {
    what: 'another host name than in the certificate',
    certificate: () => authority.issue(['db.internal']),
    expected: /certificate of PostgreSQL at localhost:\d+ is for db\.internal, not for localhost/,
    remedy: /Write a name of the certificate into DATABASE_URL/,
  },
  {
    what: 'an address that is not in the certificate',
    certificate: () => authority.issue(['localhost']),
    host: '127.0.0.1',
    expected: /certificate of PostgreSQL at 127\.0\.0\.1:\d+ is for localhost, not for 127\.0\.0\.1/,
    remedy: /Write a name of the certificate into DATABASE_URL/,
  },
  {
    what: 'a certificate of an authority that is not in sslrootcert',
    authorities: () => foreign_root,
    expected: /certificate of PostgreSQL at localhost:\d+ is of an authority that is not trusted/,
    remedy: /sslrootcert=FILE in DATABASE_URL/,
  },
  {
    what: 'a private authority without sslrootcert',
    authorities: () => null,
    expected: /certificate of PostgreSQL at localhost:\d+ is of an authority that is not trusted/,
    remedy: /sslrootcert=FILE in DATABASE_URL/,
  },
  {
    what: 'a certificate that has expired',
    certificate: () => authority.issue(['localhost'], { from_ms: -2 * HOUR_MS, until_ms: -HOUR_MS }),
    expected: /certificate of PostgreSQL at localhost:\d+ has expired/,
    remedy: /Renew it.*DATABASE_URL/,
  },
  {
    what: 'a server without TLS',
    certificate: async () => null,
    expected: /PostgreSQL at localhost:\d+ does not offer TLS, and DATABASE_URL requires it/,
    remedy: /ssl = on/,
  },
]

for (const { what, certificate, host = 'localhost', authorities, expected, remedy } of FAULTS) {
  test(`${what}: nothing connects, nothing falls back to plain, and the error names the remedy`, async (t) => {
    if (certificate !== undefined) {
      await offer(await certificate())
      undoAfter(t, () => offer(good))
    }
    const file = authorities === undefined ? root : authorities()
    const of_file = file === null ? '' : `&sslrootcert=${file}`
    const isClear = (error: Error & { code?: string }): true => {
      assert.match(error.message, expected)
      assert.match(error.message, remedy)
      // A request that needs the database then fails as in an outage, and not as by a bug.
      assert.equal(error.code, '08001')
      return true
    }
    for (const sslmode of MODES) {
      const url = urlOf(`sslmode=${sslmode}${of_file}`, host)
      await assert.rejects(openPool(t, url, 'tls refused').query('select 1'), isClear, sslmode)
      await assert.rejects(connectAlone(url), isClear)
    }
    const url = urlOf(`sslmode=verify-full${of_file}`, host)
    const { failures, wakes } = listenAt(t, url)
    await until('the listener to fail twice', () => failures.length >= 2)
    assert.match(failures[0]!, expected)
    assert.deepEqual(wakes, [])
    const config = readConfig({ DATABASE_URL: url })
    const error = await openPool(t, url, 'tls refused')
      .query('select 1')
      .catch((reason: unknown) => reason)
    assert.match(startSentence(error, config), expected)
    const [finding] = await examineDatabase(config)
    assert.match(finding?.message ?? '', expected)
    for (const name of ['tls refused', 'muster-listen', 'muster doctor', 'muster backup']) {
      assert.deepEqual(await sessionsOf(name), [], name)
    }
  })
}

test('of several servers none is used whose certificate is foreign, and each reason is in the error', async (t) => {
  const primary = new Primary({ url: `${cluster.url}&sslmode=verify-full&sslrootcert=${foreign_root}` })
  undoAfter(t, () => primary.close())
  await assert.rejects(primary.find(), /no server of DATABASE_URL accepts writes.*not trusted.*not trusted/)
  assert.deepEqual(await sessionsOf('muster primary'), [])
})

test('the failure of MUSTER_DATABASE_LISTEN_URL names that setting', async (t) => {
  const failures: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void failures.push(line) })
  const url = urlOf(`sslmode=verify-full&sslrootcert=${foreign_root}`)
  const listener = createListener({ url, log, setting: 'MUSTER_DATABASE_LISTEN_URL' })
  undoAfter(t, () => listener.close())
  await until('the listener to fail', () => failures.length > 0)
  assert.match(failures[0]!, /sslrootcert=FILE in MUSTER_DATABASE_LISTEN_URL/)
})

/** A joined node's connection to the database, which ends at the edge of the platform. Returns the first byte of the answer. */
async function bridged(t: TestContext, url: string): Promise<{ code: string; stream: ClientHttp2Stream }> {
  const server = createServer()
  const config = readConfig({ DATABASE_URL: url })
  const primary = new Primary({ url })
  const refused = Promise.withResolvers<never>()
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined)
    bridgeDatabase({ config, primary }, 'muster', stream).catch(refused.reject)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  undoAfter(t, async () => {
    session.destroy()
    server.close()
    await primary.close()
  })
  const stream = session.request({ ':method': 'POST', ':path': '/' }, { endStream: false })
  stream.on('error', () => undefined)
  const fields = ['user', 'muster', 'database', 'muster', 'application_name', 'tls node', '', '']
  const body = Buffer.from(fields.join('\0'))
  const head = Buffer.alloc(8)
  head.writeUInt32BE(head.length + body.length, 0)
  head.writeUInt32BE(196_608, 4)
  stream.write(Buffer.concat([head, body]))
  const [chunk] = (await Promise.race([once(stream, 'data'), refused.promise])) as [Buffer]
  return { code: chunk.toString('latin1', 0, 1), stream }
}

test('what a joined node sends to PostgreSQL is encrypted from the platform on', async (t) => {
  for (const host of ['localhost', '127.0.0.1']) {
    const { code, stream } = await bridged(t, urlOf(`sslmode=verify-full&sslrootcert=${root}`, host))
    assert.equal(code, 'R')
    assert.deepEqual(
      (await sessionsOf('tls node')).map(({ ssl }) => ssl),
      [true],
    )
    stream.close()
    await until('the session to end', async () => (await sessionsOf('tls node')).length === 0)
  }
})

test('a joined node gets no connection to a PostgreSQL that cannot prove itself', async (t) => {
  const url = urlOf(`sslmode=verify-full&sslrootcert=${foreign_root}`)
  await assert.rejects(bridged(t, url), /not trusted.*sslrootcert=FILE in DATABASE_URL/)
  await offer(null)
  undoAfter(t, () => offer(good))
  await assert.rejects(bridged(t, urlOf(`sslmode=verify-full&sslrootcert=${root}`)), /does not offer TLS/)
  assert.deepEqual(await sessionsOf('tls node'), [])
})

test('a file of the URL that cannot be read is a mistake in the settings, before anything connects', () => {
  for (const parameter of ['sslrootcert', 'sslcert', 'sslkey']) {
    const path = join(folder, 'missing.pem')
    assert.throws(
      () => readConfig({ DATABASE_URL: urlOf(`sslmode=verify-full&${parameter}=${path}`) }),
      new RegExp(`DATABASE_URL has ${parameter}=.*missing\\.pem, which cannot be read`),
    )
  }
})

test('doctor warns where the certificate of PostgreSQL is not checked, and only there', async () => {
  const warnings = async (parameters: string): Promise<string[]> => {
    const findings = await examineDatabase(readConfig({ DATABASE_URL: urlOf(parameters) }))
    assert.match(findings[0]!.message, /PostgreSQL 18/)
    return findings.flatMap(({ message }) => (/is not checked/.test(message) ? [message] : []))
  }
  assert.deepEqual(await warnings(`sslmode=require&sslrootcert=${root}`), [])
  for (const unproven of [
    'sslmode=no-verify',
    'uselibpqcompat=true&sslmode=require',
    `uselibpqcompat=true&sslmode=verify-ca&sslrootcert=${root}`,
  ]) {
    assert.equal((await warnings(unproven)).length, 1, unproven)
  }
})
