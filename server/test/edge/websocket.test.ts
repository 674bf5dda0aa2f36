import assert from 'node:assert'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { until } from '../support/until.ts'
import { errorOf, rawClient, startBackend, startTestEdge } from './platform.ts'

const HANDSHAKE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
const SWITCHING =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n'

/** A real WebSocket server that echoes. */
async function startEcho(t: TestContext) {
  const server = new WebSocketServer({
    host: '127.0.0.1',
    port: 0,
    perMessageDeflate: false,
    maxPayload: 64 * 1024 * 1024,
  })
  await once(server, 'listening')
  const requests: { url: string | undefined; forwarded_for: unknown; cookie: string | undefined }[] = []
  server.on('connection', (socket, request) => {
    requests.push({
      url: request.url,
      forwarded_for: request.headers['x-forwarded-for'],
      cookie: request.headers.cookie,
    })
    socket.on('message', (data, is_binary) => socket.send(data, { binary: is_binary }))
  })
  t.after(() => {
    for (const client of server.clients) client.terminate()
    server.close()
  })
  return { server, requests, port: (server.address() as AddressInfo).port }
}

/** A backend that handles raw bytes: `onRequest` gets each connection with its first bytes. */
async function startRaw(t: TestContext, onRequest: (socket: Socket, bytes: string) => void) {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.once('data', (bytes) => onRequest(socket, bytes.toString('latin1')))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { port: (server.address() as AddressInfo).port, sockets }
}

test('a WebSocket reaches its lobby by host and by path, and the lobby gets the client address', async (t) => {
  const echo = await startEcho(t)
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ 'game-port': echo.port })
  const options = { headers: { 'x-forwarded-for': '6.6.6.6', cookie: 'hub=secret' } }
  const host = `${lobby_id}-game-port.lobby.local.localhost:${edge.port}`
  const attempts = [
    () => new WebSocket(`ws://127.0.0.1:${edge.port}/room?a=b`, { headers: { ...options.headers, host } }),
    () => new WebSocket(`ws://127.0.0.1:${edge.port}/lobbies/${lobby_id}/game-port?a=b`, options),
  ]
  for (const connect of attempts) {
    const socket = connect()
    await once(socket, 'open')
    socket.send('hello')
    const [data] = await once(socket, 'message')
    assert.equal(String(data), 'hello')
    socket.close(4000, 'over')
    const [code, reason] = await once(socket, 'close')
    assert.deepEqual([code, String(reason)], [4000, 'over'])
  }
  assert.deepEqual(echo.requests, [
    { url: '/room?a=b', forwarded_for: '127.0.0.1', cookie: 'hub=secret' },
    { url: '/?a=b', forwarded_for: '127.0.0.1', cookie: undefined },
  ])
  await until('no connection is open', () => echo.server.clients.size === 0)
})

test("on the path route a handshake cannot act on the hub's origin either", async (t) => {
  const powers = 'Set-Cookie: hub=stolen\r\nClear-Site-Data: "*"\r\nSec-WebSocket-Protocol: own\r\n'
  const backend = await startRaw(t, (socket) => void socket.write(SWITCHING.replace('\r\n\r\n', `\r\n${powers}\r\n`)))
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  const shake = async (path: string, host: string) => {
    const client = rawClient(t, edge.port)
    client.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${HANDSHAKE}\r\n`)
    return client.read((bytes) => bytes.endsWith('\r\n\r\n'))
  }
  const by_path = await shake(`/lobbies/${lobby_id}/default/`, 'localhost')
  assert.match(by_path, /^HTTP\/1\.1 101 [\s\S]*\r\nSec-WebSocket-Protocol: own\r\n/)
  assert.doesNotMatch(by_path, /set-cookie|clear-site-data/i)
  assert.match(await shake('/', `${lobby_id}-default.lobby.local.localhost`), /\r\nSet-Cookie: hub=stolen\r\n/)
})

test('a hundred megabytes in random pieces arrive unchanged, both ways', async (t) => {
  const SUM = 100 * 1024 * 1024
  const PIECE_MAX = 200_000
  const echo = await startEcho(t)
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: echo.port })
  const socket = new WebSocket(`ws://127.0.0.1:${edge.port}/lobbies/${lobby_id}/default`)
  await once(socket, 'open')
  const [sent, received] = [createHash('sha256'), createHash('sha256')]
  const lengths: number[] = []
  const done = Promise.withResolvers<void>()
  let received_length = 0
  socket.on('message', (data: Buffer) => {
    assert.equal(data.length, lengths.shift())
    received.update(data)
    received_length += data.length
    if (received_length === SUM) done.resolve()
  })
  for (let left = SUM; left > 0; ) {
    const piece = randomBytes(Math.min(left, 1 + (randomBytes(4).readUInt32LE() % PIECE_MAX)))
    left -= piece.length
    lengths.push(piece.length)
    sent.update(piece)
    socket.send(piece)
    if (piece.length % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await done.promise
  assert.equal(received.digest('hex'), sent.digest('hex'))
  socket.close()
  await once(socket, 'close')
})

test('bytes directly after the handshake wait for the 101; bytes directly after the 101 are not lost', async (t) => {
  const backend = await startRaw(t, (socket, head) => {
    assert.ok(head.endsWith('\r\n\r\n'), 'nothing but the head comes before the 101')
    socket.write(`${SWITCHING}first`)
    socket.on('data', (bytes) => socket.write(bytes))
  })
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  const client = rawClient(t, edge.port)
  client.write(`GET / HTTP/1.1\r\nHost: ${lobby_id}-default.lobby.local.localhost\r\n${HANDSHAKE}\r\nsecond`)
  const bytes = await client.read((all) => all.includes('second'))
  assert.match(bytes, /^HTTP\/1\.1 101 Switching Protocols\r\n[\s\S]*\r\n\r\nfirstsecond$/)
})

test('a response other than 101 is an ordinary response, and no byte after the handshake reaches the backend', async (t) => {
  const responses = {
    '/200': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    '/403': 'HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n',
    '/302': 'HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n',
  }
  let behind = ''
  const backend = await startRaw(t, (socket, head) => {
    socket.on('data', (bytes) => {
      behind += bytes.toString()
    })
    socket.write(responses[head.split(' ', 2)[1] as keyof typeof responses])
  })
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  for (const path of Object.keys(responses)) {
    const client = rawClient(t, edge.port)
    client.write(
      `GET ${path} HTTP/1.1\r\nHost: ${lobby_id}-default.lobby.local.localhost\r\n${HANDSHAKE}\r\nGET /hidden HTTP/1.1\r\n\r\n`,
    )
    const response = await client.end()
    assert.ok(response.startsWith(`HTTP/1.1 ${path.slice(1)} `), response)
    assert.match(response, /^connection: close\r$/im)
    assert.equal(response.split('HTTP/1.1 ').length, 2)
  }
  assert.equal(behind, '')
})

test('the refusal of a WebSocket server arrives unchanged', async (t) => {
  const echo = await startEcho(t)
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: echo.port })
  const broken: [RegExp, string, RegExp][] = [
    [/^Sec-WebSocket-Key: .*\r\n/m, '', /^HTTP\/1\.1 400 [\s\S]*Sec-WebSocket-Key/],
    [/Key: .*$/m, 'Key: short', /^HTTP\/1\.1 400 [\s\S]*Sec-WebSocket-Key/],
    [/Version: 13/, 'Version: 99', /^HTTP\/1\.1 400 [\s\S]*Sec-WebSocket-Version: 13, 8/],
  ]
  for (const [part, instead, response] of broken) {
    const client = rawClient(t, edge.port)
    const lines = HANDSHAKE.replace(part, instead)
    client.write(`GET / HTTP/1.1\r\nHost: ${lobby_id}-default.lobby.local.localhost\r\n${lines}\r\n`)
    assert.match(await client.end(), response)
  }
  assert.equal(echo.requests.length, 0)
})

test('a large response other than 101 arrives whole', async (t) => {
  const LENGTH = 5 * 1024 * 1024
  const backend = await startRaw(t, (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${LENGTH}\r\n\r\n`)
    socket.write(Buffer.alloc(LENGTH, 'x'))
  })
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  const client = rawClient(t, edge.port)
  client.write(`GET / HTTP/1.1\r\nHost: ${lobby_id}-default.lobby.local.localhost\r\n${HANDSHAKE}\r\n`)
  const response = await client.end()
  assert.equal(response.length - response.indexOf('\r\n\r\n') - 4, LENGTH)
})

test('every failure of a backend during a handshake is a 502, and the edge continues', async (t) => {
  const misdeeds: Record<string, (socket: Socket) => void> = {
    'a reset in the middle': (socket) => void socket.write('HTTP/1.1 101 Swi', () => socket.resetAndDestroy()),
    'a reset at once': (socket) => void socket.resetAndDestroy(),
    'an end': (socket) => void socket.end(),
    'data before the 101': (socket) => void socket.write(`\x81\x05hello${SWITCHING}`),
    'five thousand headers': (socket) =>
      void socket.write(SWITCHING.replace('\r\n', `\r\n${'a: b\r\n'.repeat(5_000)}`)),
    'a 101 without Upgrade, then an end': (socket) => void socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  }
  let misdeed = misdeeds['an end']!
  const backend = await startRaw(t, (socket) => misdeed(socket))
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  for (const [name, does] of Object.entries(misdeeds)) {
    misdeed = does
    const client = rawClient(t, edge.port)
    client.write(`GET / HTTP/1.1\r\nHost: ${lobby_id}-default.lobby.local.localhost\r\n${HANDSHAKE}\r\n`)
    const response = await client.end()
    const { status, code } = errorOf(response)
    assert.deepEqual([status, code], [502, 'LOBBY_NOT_REACHABLE'], name)
  }
})

test('only a plain WebSocket handshake is upgraded', async (t) => {
  let requests: string[] = []
  const backend = await startRaw(t, (socket, head) => {
    requests.push(head)
    socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok')
  })
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  const host = `Host: ${lobby_id}-default.lobby.local.localhost\r\n`
  const ordinary = {
    'two Upgrade headers': `GET / HTTP/1.1\r\n${host}${HANDSHAKE}Upgrade: websocket\r\n\r\n`,
    'a list of protocols': `GET / HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n\r\n`,
    h2c: `GET / HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`,
    'no Connection': `GET / HTTP/1.1\r\n${host}Upgrade: websocket\r\n\r\n`,
    POST: `POST / HTTP/1.1\r\n${host}${HANDSHAKE}Content-Length: 0\r\n\r\n`,
    'HTTP/1.0': `GET / HTTP/1.0\r\n${host}${HANDSHAKE}\r\n`,
  }
  for (const [name, bytes] of Object.entries(ordinary)) {
    requests = []
    const client = rawClient(t, edge.port)
    client.write(bytes)
    await client.read((response) => /^HTTP\/1\.1 200 [\s\S]*ok$/.test(response))
    assert.equal(requests.length, 1, name)
    assert.doesNotMatch(requests[0]!, /^upgrade:/im, name)
  }
  const refused = {
    'an absolute target': `GET http://169.254.169.254/ HTTP/1.1\r\n${host}${HANDSHAKE}\r\n`,
    'no host': `GET / HTTP/1.1\r\n${HANDSHAKE}\r\n`,
    'too many headers': `GET / HTTP/1.1\r\n${host}${'a: b\r\n'.repeat(150)}${HANDSHAKE}\r\n`,
    'five thousand headers': `GET / HTTP/1.1\r\n${host}${'a: b\r\n'.repeat(5_000)}${HANDSHAKE}\r\n`,
  }
  requests = []
  for (const [name, bytes] of Object.entries(refused)) {
    const client = rawClient(t, edge.port)
    client.write(bytes)
    assert.ok([400, 431].includes(errorOf(await client.end()).status), name)
  }
  const elsewhere = rawClient(t, edge.port)
  elsewhere.write(`GET / HTTP/1.1\r\nHost: 169.254.169.254\r\n${HANDSHAKE}\r\n`)
  assert.equal(errorOf(await elsewhere.end()).status, 404)
  assert.equal(requests.length, 0)
})

test('a broken side resets the other, and a side that has ended lets the other finish', async (t) => {
  let backend_socket: Socket | undefined
  const backend = await startRaw(t, (socket) => {
    backend_socket = socket
    socket.write(SWITCHING)
  })
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  const open = async () => {
    const client = rawClient(t, edge.port)
    client.write(`GET / HTTP/1.1\r\nHost: ${lobby_id}-default.lobby.local.localhost\r\n${HANDSHAKE}\r\n`)
    await client.read((bytes) => bytes.endsWith('\r\n\r\n'))
    return client
  }
  const errorOn = (socket: Socket) => new Promise<NodeJS.ErrnoException>((resolve) => socket.once('error', resolve))

  const lost = await open()
  const broken = errorOn(backend_socket!)
  backend_socket!.resume()
  lost.socket.resetAndDestroy()
  assert.equal((await broken).code, 'ECONNRESET')

  const survivor = await open()
  const reset = errorOn(survivor.socket)
  backend_socket!.resetAndDestroy()
  assert.equal((await reset).code, 'ECONNRESET')

  const finished = await open()
  const heard = once(backend_socket!, 'data')
  finished.socket.end('last words')
  assert.equal(String((await heard)[0]), 'last words')
  backend_socket!.end('last bytes')
  assert.match(await finished.end(), /last bytes$/)
})

test('a player who does not read takes no memory of the edge', async (t) => {
  const SENT_MAX = 64 * 1024 * 1024
  const chunk = Buffer.alloc(64 * 1024)
  let backend_socket: Socket | undefined
  const backend = await startRaw(t, (socket) => {
    backend_socket = socket
    socket.write(SWITCHING)
    for (let sent = 0; sent < SENT_MAX; sent += chunk.length) socket.write(chunk)
  })
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  const client = rawClient(t, edge.port)
  client.socket.pause()
  client.write(`GET / HTTP/1.1\r\nHost: ${lobby_id}-default.lobby.local.localhost\r\n${HANDSHAKE}\r\n`)
  let [last, same] = [-1, 0]
  await until('no more bytes move', () => {
    const left = backend_socket?.writableLength ?? -1
    same = left !== -1 && left === last ? same + 1 : 0
    last = left
    return same > 40
  })
  assert.ok(last > SENT_MAX / 2, `${last} bytes are left to send`)
})

test('a WebSocket continues while api and matchmaker are down, and a killed backend ends it', async (t) => {
  const api = await startBackend(t, 'api')
  const echo = await startEcho(t)
  const edge = await startTestEdge(t, { api_port: api.port })
  const lobby_id = await edge.lobby({ default: echo.port })
  const socket = new WebSocket(`ws://127.0.0.1:${edge.port}/lobbies/${lobby_id}/default`)
  await once(socket, 'open')
  await api.close()
  socket.send('still here')
  assert.equal(String((await once(socket, 'message'))[0]), 'still here')
  for (const client of echo.server.clients) client.terminate()
  const [code] = await once(socket, 'close')
  assert.equal(code, 1006)
})
