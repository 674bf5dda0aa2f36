// A client that comes back with a ticket saves most of a handshake, whichever edge process of the data folder it meets.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect, type SecureVersion } from 'node:tls'
import pino from 'pino'
import { TICKET_KEY_MS, TicketKeys } from '../../src/edge/tls/ticket-keys.ts'
import { startBackend, startTestEdge } from './platform.ts'

const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const satisfies readonly SecureVersion[]
const REQUEST = 'GET /cloud/bootstrap HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-tickets-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

type Visit = { is_resumed: boolean; session: Buffer | undefined; response: string }

/** Sends one request over a connection of its own. `session`: of an earlier visit. */
async function visit(port: number, version: SecureVersion, ca: string, session?: Buffer): Promise<Visit> {
  const versions = { minVersion: version, maxVersion: version }
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca, ...versions, session })
  const found: Visit = { is_resumed: false, session: undefined, response: '' }
  socket.on('session', (later: Buffer) => {
    found.session = later
  })
  socket.on('data', (part) => {
    found.response += String(part)
  })
  await once(socket, 'secureConnect')
  found.is_resumed = socket.isSessionReused()
  socket.write(REQUEST)
  await once(socket, 'close')
  return found
}

test('a ticket of an edge is good at the next edge of its data folder, and at no other', async (t) => {
  const api = await startBackend(t, 'api')
  const first = await startTestEdge(t, { api_port: api.port })
  const { data_dir } = first.ctx.config
  const ca = readFileSync(join(data_dir, 'keys', 'local-authority.crt'), 'utf8')
  const visits = new Map<SecureVersion, Visit>()
  for (const version of VERSIONS) {
    const before = await visit(first.https_port, version, ca)
    assert.deepEqual([before.is_resumed, before.session instanceof Buffer], [false, true], version)
    visits.set(version, before)
  }
  await first.role.stop({ end_lobbies: false })

  const next = await startTestEdge(t, { api_port: api.port, env: { MUSTER_DATA: data_dir } })
  // It is another machine with the same certificates.
  const other_folder = makeFolder(t)
  const other = await startTestEdge(t, { api_port: api.port, env: { MUSTER_DATA: other_folder } })
  const other_ca = readFileSync(join(other_folder, 'keys', 'local-authority.crt'), 'utf8')
  for (const version of VERSIONS) {
    const { session } = visits.get(version)!
    const again = await visit(next.https_port, version, ca, session)
    assert.ok(again.is_resumed, version)
    assert.match(again.response, /^HTTP\/1\.1 200 .*api$/s, version)
    assert.equal((await visit(other.https_port, version, other_ca, session)).is_resumed, false, version)
  }
})

/** A TLS server that remembers its keys. */
function fakeServer() {
  const keys: Buffer[] = []
  return { keys, setTicketKeys: (key: Buffer) => void keys.push(key) }
}

test('the processes of a folder share a key for its time, and its file ends with it', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let now_ms = 10 * TICKET_KEY_MS + 1
  const ctx = { now: () => now_ms, log: pino({ level: 'silent' }) }
  const folder = makeFolder(t)
  const pass = (ms: number): void => {
    now_ms += ms
    t.mock.timers.tick(ms)
  }
  const processes = [new TicketKeys(ctx, folder), new TicketKeys(ctx, folder)]
  t.after(() => {
    for (const one of processes) one.close()
  })
  const servers = processes.map((one) => one.keep(fakeServer()))
  const files = join(folder, 'ticket-keys')
  const [first] = readdirSync(files)
  assert.equal(statSync(files).mode & 0o777, 0o700)
  assert.equal(statSync(join(files, first!)).mode & 0o777, 0o600)
  pass(TICKET_KEY_MS - 2)
  assert.deepEqual(
    servers.map(({ keys }) => keys.length),
    [1, 1],
  )
  pass(2)
  const [mine, others] = servers.map(({ keys }) => keys)
  assert.equal(mine!.length, 2)
  assert.deepEqual(mine, others)
  assert.notDeepEqual(mine![0], mine![1])
  assert.deepEqual(readdirSync(files), ['11'])
})

test('a folder that cannot be written leaves a server its own keys, until it can', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let now_ms = 1
  const folder = makeFolder(t)
  const blocked = join(folder, 'blocked')
  writeFileSync(blocked, 'a file where the folder would be')
  const warnings: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(line) })
  const keys = new TicketKeys({ now: () => now_ms, log }, blocked)
  t.after(() => keys.close())
  const server = keys.keep(fakeServer())
  assert.equal(server.keys.length, 0)
  assert.equal(warnings.length, 1)
  rmSync(blocked)
  now_ms += 3_600_000
  t.mock.timers.tick(3_600_000)
  assert.equal(server.keys.length, 1)
  assert.equal(warnings.length, 1)
})
