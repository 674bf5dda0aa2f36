import assert from 'node:assert'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { PORT_CONNECTIONS_PER_CLIENT_MAX } from '../../src/edge/limits.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { RAW_HOST, startTestEdge } from './platform.ts'

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')

/** Starts a lobby's server whose game is `onConnection`. */
async function startServer(t: TestContext, onConnection: (socket: Socket) => void, port = 0) {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    onConnection(socket)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { port: (server.address() as AddressInfo).port, sockets }
}

function dial(t: TestContext, port: number, from = '127.0.0.1'): Socket {
  const socket = connect({ host: RAW_HOST, port, localAddress: from, allowHalfOpen: true })
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  return socket
}

/** Resolves when the connection has ended, by an end or a reset. */
function overOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('end', () => resolve()).once('close', () => resolve()))
}

async function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await overOf(socket)
  return Buffer.concat(chunks)
}

test('a hundred megabytes in random pieces arrive unchanged, both ways, also at a slow reader', async (t) => {
  const SUM = 100 * 1024 * 1024
  const echo = await startServer(t, (socket) => socket.pipe(socket))
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('tcp', echo.port)
  const socket = dial(t, number)
  const [sent, received] = [createHash('sha256'), createHash('sha256')]
  let received_length = 0
  socket.on('data', (chunk: Buffer) => {
    received.update(chunk)
    received_length += chunk.length
    // The reader pauses now and then: the edge must not buffer the bytes under way.
    if (received_length % 97 === 0) {
      socket.pause()
      setImmediate(() => socket.resume())
    }
  })
  for (let left = SUM; left > 0; ) {
    const piece = randomBytes(Math.min(left, 1 + Math.floor(Math.random() * 300_000)))
    sent.update(piece)
    left -= piece.length
    if (!socket.write(piece)) await once(socket, 'drain')
  }
  socket.end()
  await once(socket, 'end')
  assert.strictEqual(received_length, SUM)
  assert.strictEqual(received.digest('hex'), sent.digest('hex'))
})

test('either side may end its direction first and still receive from the other', async (t) => {
  const server = await startServer(t, (socket) => {
    socket.end('the server speaks first and last')
    socket.once('data', (bytes) => void seen.resolve(String(bytes)))
  })
  const seen = Promise.withResolvers<string>()
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('tcp', server.port)
  const socket = dial(t, number)
  assert.strictEqual(String(await readAll(socket)), 'the server speaks first and last')
  socket.end('and the client after it')
  assert.strictEqual(await seen.promise, 'and the client after it')
})

test('first bytes that could begin a request or a handshake reach the server soon, and its greeting before them', async (t) => {
  const server = await startServer(t, (socket) => {
    socket.write('!')
    socket.pipe(socket)
  })
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('tcp', server.port)
  for (const text of ['P', 'D', 'G', 'H', 'O', '\x16', 'GET /', 'PUT /key', '\x16\x03\x01\x02\0\x01']) {
    const socket = dial(t, number).setEncoding('latin1')
    assert.strictEqual(String(await once(socket, 'data')), '!', 'the server speaks first')
    socket.write(Buffer.from(text, 'latin1'))
    assert.strictEqual(String(await once(socket, 'data')), text)
    // Later bytes that complete no request of a browser pass as well.
    socket.write('\n')
    assert.strictEqual(String(await once(socket, 'data')), '\n')
  }
  const late = dial(t, number).setEncoding('latin1')
  await once(late, 'data')
  late.write('GET / HTTP')
  assert.strictEqual(String(await once(late, 'data')), 'GET / HTTP')
  const over = overOf(late)
  late.write('/1.1\r\nCookie: a=secret\r\nHost: localhost\r\n\r\n')
  const rest: string[] = []
  late.on('data', (bytes) => void rest.push(String(bytes)))
  await over
  assert.deepStrictEqual(rest, [], 'a request for another host is still refused')
})

test('a connection that breaks on one side is broken on the other', async (t) => {
  const server = await startServer(t, () => {})
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('tcp', server.port)
  const socket = dial(t, number)
  socket.write('x')
  await until('the server has the connection', () => server.sockets.size === 1)
  socket.resetAndDestroy()
  await until('the server has lost it', () => server.sockets.size === 0)
})

test('a port without a lobby, or whose lobby has stopped, accepts no connection', async (t) => {
  const server = await startServer(t, (socket) => socket.end('hello'))
  const edge = await startTestEdge(t)
  const { lobby_id, number } = await edge.raw('tcp', server.port)
  assert.strictEqual(String(await readAll(dial(t, number))), 'hello')
  const spare = (await edge.openPorts('tcp')).find((port) => port !== number)!
  assert.strictEqual(String(await readAll(dial(t, spare))), '')
  await edge.stopLobby(lobby_id)
  await until('the stopped lobby is not reached', async () => String(await readAll(dial(t, number))) === '')
})

test('a connection waits for a server that is ready a moment before it listens', async (t) => {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('tcp', port)
  const early = dial(t, number)
  const bytes = readAll(early)
  await once(early, 'connect')
  await startServer(t, (socket) => socket.end('late'), port)
  assert.strictEqual(String(await bytes), 'late')
})

test('a lobby that requests it gets the client address in a PROXY header, also from a trusted balancer', async (t) => {
  const server = await startServer(t, (socket) => {
    socket.on('data', (bytes) => socket.write(bytes.toString('hex')))
    socket.on('end', () => socket.end())
  })
  const edge = await startTestEdge(t, { env: { MUSTER_PROXY_PROTOCOL_FROM: '127.0.0.9/32' } })
  const { number } = await edge.raw('tcp', server.port, { proxy_protocol: true })
  const number_hex = number.toString(16).padStart(4, '0')
  const header = (source: string, port: number) =>
    `${SIGNATURE.toString('hex')}2111000c${source}7f000002${port.toString(16).padStart(4, '0')}${number_hex}`

  const plain = dial(t, number)
  await once(plain, 'connect')
  const own = header('7f000001', plain.localPort!)
  plain.end('hi')
  assert.strictEqual(String(await readAll(plain)), `${own}6869`)
  // A PROXY header of any other peer is forwarded as plain bytes.
  const liar = dial(t, number)
  await once(liar, 'connect')
  const lie = Buffer.from(`${SIGNATURE.toString('hex')}2111000cc0000201c633640a1f900050`, 'hex')
  const of_liar = header('7f000001', liar.localPort!)
  liar.end(lie)
  assert.strictEqual(String(await readAll(liar)), `${of_liar}${lie.toString('hex')}`)

  const told = (command: string, family: string, body: string) =>
    Buffer.from(
      `${SIGNATURE.toString('hex')}${command}${family}${(body.length / 2).toString(16).padStart(4, '0')}${body}`,
      'hex',
    )
  const INET = 'c0000201c633640a1f90' // 192.0.2.1 to 198.51.100.10, from port 8080
  const asked = async (...parts: (Buffer | string)[]): Promise<string> => {
    const socket = dial(t, number, '127.0.0.9')
    await once(socket, 'connect')
    for (const part of parts) {
      socket.write(part)
      await new Promise((resolve) => setImmediate(resolve))
    }
    socket.end()
    return String(await readAll(socket))
  }
  const good = told('21', '11', `${INET}0050`)
  assert.strictEqual(await asked(Buffer.concat([good, Buffer.from('hi')])), `${header('c0000201', 0x1f90)}6869`)
  assert.strictEqual(await asked(good.subarray(0, 7), good.subarray(7), 'hi'), `${header('c0000201', 0x1f90)}6869`)
  // LOCAL: a connection of the balancer itself.
  assert.match(await asked(told('20', '00', ''), 'hi'), /^0d0a0d0a000d0a515549540a2111000c7f0000097f000002.{8}6869$/)
  // Malformed: a byte of the signature, a version, a UNIX address, too short, too long, version 1, no header.
  const broken = Buffer.from(good)
  broken[3] = 1
  for (const bytes of [
    broken,
    told('11', '11', `${INET}0050`),
    told('21', '31', '00'.repeat(216)),
    told('21', '11', 'c0000201'),
    told('21', '11', '00'.repeat(4_000)),
    Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.10 8080 80\r\nhi'),
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
  ]) {
    assert.strictEqual(await asked(bytes), '', bytes.toString('hex').slice(0, 80))
  }
  assert.strictEqual(await asked(good.subarray(0, 20)), '', 'cut off')
})

test('the connections of one client to a port are limited, and other clients still get in', async (t) => {
  const server = await startServer(t, (socket) => void socket.write('in'))
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('tcp', server.port)
  const enter = async (from: string): Promise<boolean> => {
    const socket = dial(t, number, from)
    const first = new Promise<boolean>((resolve) => socket.once('data', () => resolve(true)))
    return Promise.race([first, overOf(socket).then(() => false)])
  }
  const entered = await Promise.all(
    Array.from({ length: PORT_CONNECTIONS_PER_CLIENT_MAX + 5 }, () => enter('127.0.0.2')),
  )
  assert.strictEqual(entered.filter(Boolean).length, PORT_CONNECTIONS_PER_CLIENT_MAX)
  assert.strictEqual(await enter('127.0.0.3'), true)
})

test('a new edge opens the ports of live lobbies again, and skips ports of other programs', async (t) => {
  const database_url = await createDatabase(t)
  const server = await startServer(t, (socket) => socket.end('hello'))
  const stranger = createServer((socket) => socket.end('stranger'))
  stranger.listen(0, RAW_HOST)
  await once(stranger, 'listening')
  t.after(() => stranger.close())
  const taken = (stranger.address() as AddressInfo).port
  const first = await startTestEdge(t, {
    database_url,
    env: { MUSTER_EDGE_PORTS: `${taken}-${Math.min(taken + 60, 65_535)}`, MUSTER_EDGE_PORTS_SPARE: '16' },
  })
  assert.ok(!(await first.openPorts('tcp')).includes(taken))
  const lobbies = [await first.raw('tcp', server.port), await first.raw('tcp', server.port)]
  const before = await first.openPorts('tcp')
  await first.role.stop({ end_lobbies: false })
  assert.strictEqual(String(await readAll(dial(t, lobbies[0]!.number))), '')
  const second = await startTestEdge(t, { database_url, env: { MUSTER_EDGE_PORTS_SPARE: '16' } })
  for (const { number } of lobbies) assert.strictEqual(String(await readAll(dial(t, number))), 'hello')
  const after = new Set(await second.openPorts('tcp'))
  assert.deepStrictEqual(
    before.filter((port) => !after.has(port)),
    [],
  )
})
