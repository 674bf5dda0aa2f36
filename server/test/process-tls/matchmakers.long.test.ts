// Matchmakers of several nodes call each other over mutual TLS, also where all of them are on one machine.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { findLobby } from '@musterhost/contract'
import { issueProcessCertificate } from '../../src/process-tls/certificate.ts'
import { CERTIFICATE_LIFETIME_MS, nameOfProcess, type ProcessRole } from '../../src/process-tls/names.ts'
import { ProcessTls } from '../../src/process-tls/process-tls.ts'
import { createKeys, type Keys } from '../../src/tokens/keys.ts'
import { evenShares, gameIn, startNodes } from '../matchmaker/nodes.ts'
import { makeAuthority } from '../support/certificates.ts'
import type { Platform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { attempt, type Target } from './attempts.ts'

const FIND = { body: { game_modes: ['default'] } }
const REQUEST = 'GET / HTTP/1.1\r\n\r\n'
/** Less than a handshake may take. */
const END_MS_MAX = 9_000
const LIMITS = { max_players_per_client: 10_000, lobby_count_max: 1_000 }

test('what a matchmaker sends to another one cannot be read on the way', async (t) => {
  const nodes = await startNodes(t)
  const { first } = nodes
  const second = await nodes.join()
  const shares = await evenShares([first, second])
  const game = await gameIn(first, shares.get(second.ctx.config.node_id)!, { limits: LIMITS })
  first.playServers()
  const relay = await startRecorder(t, portOf(second))
  const find = async (): Promise<string> => {
    const { lobby } = await first.as(game.public_token).call(findLobby, FIND)
    return lobby.player.token
  }

  await first.ctx.db
    .updateTable('matchmakers')
    .set({ address: `127.0.0.1:${relay.port}` })
    .where('node_id', '=', second.ctx.config.node_id)
    .execute()
  await until('finds over the relay', async () => (await find()) !== '' && relay.recorded().length > 0)
  const secret = await find()
  const secrets = [game.public_token, secret, 'find', 'authorization', '/matchmaker/']
  for (const text of secrets) assert.ok(!relay.recorded().includes(text), `${text} can be read`)

  // What is recorded does show a find that can be read.
  const plain = await fetch(`http://127.0.0.1:${relay.port}/matchmaker/lobbies/find`, {
    method: 'POST',
    headers: { authorization: `Bearer ${game.public_token}`, 'content-type': 'application/json' },
    body: JSON.stringify(FIND.body),
  })
  await plain.text()
  for (const text of [game.public_token, 'find', '/matchmaker/']) assert.ok(relay.recorded().includes(text), text)
})

test('a matchmaker serves over TLS only processes of its platform, with the role of a caller', async (t) => {
  const { first } = await startNodes(t)
  const { keys } = first.ctx
  const target: Target = { host: '127.0.0.1', port: portOf(first) }
  const certify = (ring: Keys, role: string) => issueProcessCertificate(ring, role as ProcessRole, Date.now())
  for (const role of ['edge', 'matchmaker']) {
    assert.match(await attempt(target, keys, await certify(keys, role)), /^HTTP\/1\.1 [24]\d\d/, role)
  }
  const stranger = await (await makeAuthority()).issue([nameOfProcess('edge')])
  const refused = {
    'no certificate': {},
    'of an authority with the same name': await certify(createKeys(), 'edge'),
    'of another authority': stranger,
    'of the api': await certify(keys, 'api'),
    'of a runner': await certify(keys, 'runner'),
    'with TLS 1.2': { ...(await certify(keys, 'edge')), maxVersion: 'TLSv1.2' as const },
  }
  for (const [what, options] of Object.entries(refused)) assert.equal(await attempt(target, keys, options), '', what)
})

test('a connection that ends in its handshake is closed at once', async (t) => {
  const { first } = await startNodes(t)
  const socket = connect({ port: portOf(first), host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => {})
  socket.end(Buffer.from('160301020001000d0a', 'hex'))
  socket.resume()
  const begin_ms = performance.now()
  await until('the end of the connection', () => socket.readableEnded || socket.errored !== null)
  socket.destroy()
  const took_ms = performance.now() - begin_ms
  assert.ok(took_ms < END_MS_MAX, `${took_ms} ms`)
})

test('a process that cannot prove to be a matchmaker of the platform gets no request', async (t) => {
  const { ctx } = (await startNodes(t)).first
  const tls = new ProcessTls(ctx, 'matchmaker')
  t.after(() => tls.close())
  await tls.open()
  let received = ''
  const take = (socket: Socket): void => {
    socket.on('error', () => {})
    socket.on('data', (bytes: Buffer) => {
      received += bytes.toString('latin1')
    })
  }
  const impostors = {
    'without TLS': createServer(take),
    'of another platform': createTlsServer(await issueProcessCertificate(createKeys(), 'matchmaker', Date.now()), take),
    'of the api': createTlsServer(await issueProcessCertificate(ctx.keys, 'api', Date.now()), take),
    'of an edge': createTlsServer(await issueProcessCertificate(ctx.keys, 'edge', Date.now()), take),
  }
  for (const [what, server] of Object.entries(impostors)) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const socket = tls.connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port })
    socket.write(REQUEST)
    await assert.rejects(once(socket, 'secureConnect'), what)
  }
  assert.ok(!received.includes(REQUEST))
})

test('the certificates are renewed while players find lobbies, and no find fails', async (t) => {
  const nodes = await startNodes(t)
  const { first } = nodes
  first.playServers()
  const second = await nodes.join()
  const shares = await evenShares([first, second])
  const game = await gameIn(first, shares.get(second.ctx.config.node_id)!, { limits: LIMITS })
  const failures: unknown[] = []
  let [found, is_over] = [0, false]
  const play = async (): Promise<void> => {
    while (!is_over) {
      await game.player.call(findLobby, FIND).then(
        () => found++,
        (error: unknown) => failures.push(error),
      )
    }
  }
  const playing = [play(), play()]
  await until('finds', () => found > 10)
  const before = await certificateOf(second)
  // An agent that never makes a new connection would prove nothing.
  for (const { advance } of [first, second]) advance(CERTIFICATE_LIFETIME_MS / 2)
  await until('another certificate', async () => (await certificateOf(second)) !== before)
  const renewed = found
  await until('finds go on', () => found > renewed + 10)
  is_over = true
  await Promise.all(playing)
  assert.deepEqual(failures, [])
})

function portOf({ ctx }: Platform): number {
  return ctx.config.matchmaker_port
}

/** The fingerprint of what the matchmaker shows to an edge. */
async function certificateOf(platform: Platform): Promise<string> {
  const own = await issueProcessCertificate(platform.ctx.keys, 'edge', Date.now())
  const socket = connectTls({
    port: portOf(platform),
    host: '127.0.0.1',
    ...own,
    servername: nameOfProcess('matchmaker'),
  })
  await once(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

/** Records the bytes of both directions between its clients and a port. */
async function startRecorder(t: TestContext, port: number): Promise<{ port: number; recorded: () => string }> {
  let recorded = ''
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('close', () => to.destroy())
      from.on('data', (bytes) => {
        recorded += bytes.toString('latin1')
        to.write(bytes)
      })
    }
  })
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, recorded: () => recorded }
}
