// Malformed and surplus responses of backends: the client gets a refusal, the connection is not used again, and the next
// client gets its own response.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { HEADER_BYTES_MAX, INTERIM_RESPONSES_MAX } from '../../src/edge/limits.ts'
import { until } from '../support/until.ts'
import { errorOf, rawClient, startTestEdge } from './platform.ts'
import { startBytes } from './strict-backend.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine'
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

/** A lobby that responds by `responses` to every request, and correctly to `/fine`. */
async function startLobby(t: TestContext, response: (socket: Socket, request: string) => void) {
  const backend = await startBytes(t, (socket) => {
    socket.on('data', (bytes) => {
      const request = bytes.toString('latin1')
      if (request.includes(' /fine ')) socket.write(OK)
      else response(socket, request)
    })
  })
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: backend.port })
  const host = `Host: ${lobby_id}-default.lobby.local.localhost\r\n`
  const ask = (path: string, more = '', method = 'GET', version = '1.1') => {
    const client = rawClient(t, edge.port)
    client.write(`${method} ${path} HTTP/${version}\r\n${host}${more}\r\n`)
    return client
  }
  /** The misused connection is closed, and the next request gets its own response. */
  const requireNext = async (what: string) => {
    await until(`${what}: the connection is closed`, () => backend.open.size === 0)
    assert.match(await ask('/fine', 'Connection: close\r\n').end(), /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nfine$/, what)
    for (const socket of backend.open) socket.destroy()
  }
  return { backend, edge, host, ask, requireNext }
}

test('a malformed response is a 502, and its connection is not used again', async (t) => {
  const length = 'Content-Length: 2\r\n'
  const responses: Record<string, string> = {
    'another protocol': 'SSH-2.0-OpenSSH_9.2\r\n',
    'another version': `HTTP/2.0 200 OK\r\n${length}\r\nok`,
    'no version': `HTTP 200 OK\r\n${length}\r\nok`,
    'a status of four digits': `HTTP/1.1 2000 OK\r\n${length}\r\nok`,
    'a status of two digits': `HTTP/1.1 20 OK\r\n${length}\r\nok`,
    'a status below 100': `HTTP/1.1 099 OK\r\n${length}\r\nok`,
    'a control character in the reason': `HTTP/1.1 200 O\0K\r\n${length}\r\nok`,
    'two equal lengths': `HTTP/1.1 200 OK\r\n${length}${length}\r\nok`,
    'a list of lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok',
    'a signed length': 'HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok',
    'a length and chunks': `HTTP/1.1 200 OK\r\n${length}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    'chunks and a length': `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n${length}\r\n2\r\nok\r\n0\r\n\r\n`,
    'chunked twice': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'another coding': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    'chunks in HTTP/1.0': 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    'a folded line': `HTTP/1.1 200 OK\r\nX: a\r\n b\r\n${length}\r\nok`,
    'a bare LF': `HTTP/1.1 200 OK\n${length}\n\nok`,
    'a bare CR': `HTTP/1.1 200 OK\r\nX: a\rb\r\n${length}\r\nok`,
    'a line without a colon': `HTTP/1.1 200 OK\r\nnonsense\r\n${length}\r\nok`,
    'a space before the colon': `HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok`,
    'a head over the limit': `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n${length}\r\nok`,
    'a head without an end': `HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(HEADER_BYTES_MAX / 6 + 1)}`,
    'an invalid chunk size': `${CHUNKED}zz\r\nok\r\n0\r\n\r\n`,
    'a chunk size over 2^48': `${CHUNKED}ffffffffffffffff2\r\nok\r\n0\r\n\r\n`,
    'a chunk longer than its size': `${CHUNKED}2\r\nokok\r\n0\r\n\r\n`,
    'a chunk ended by a bare LF': `${CHUNKED}2\nok\n0\n\n`,
    'a length after the chunks': `${CHUNKED}2\r\nok\r\n0\r\nContent-Length: 3\r\n\r\n`,
    'an upgrade that was not requested':
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    'endless interim responses': 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(INTERIM_RESPONSES_MAX + 1) + OK,
  }
  const lobby = await startLobby(t, (socket, request) => {
    socket.write(responses[decodeURIComponent(request.split(' ', 2)[1]!.slice(1))]!, 'latin1')
  })
  for (const what of Object.keys(responses)) {
    const client = lobby.ask(`/${encodeURIComponent(what)}`)
    const { status, code } = errorOf(await client.read((bytes) => bytes.endsWith('}')))
    assert.deepEqual([status, code], [502, 'LOBBY_NOT_REACHABLE'], what)
    await lobby.requireNext(what)
    // The client's connection continues.
    client.write(`GET /fine HTTP/1.1\r\n${lobby.host}\r\n`)
    await client.read((bytes) => bytes.endsWith('fine'))
    for (const socket of lobby.backend.open) socket.destroy()
  }
})

test('bytes after a response reach no client', async (t) => {
  const stolen = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen'
  const responses: Record<string, { bytes: string; method?: string; expected: RegExp }> = {
    '/length': { bytes: `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok${stolen}`, expected: /\r\n\r\nok$/ },
    '/chunks': { bytes: `${CHUNKED}2\r\nok\r\n0\r\n\r\n${stolen}`, expected: /\r\n\r\n2\r\nok\r\n0\r\n\r\n$/ },
    '/204': {
      bytes: `HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok${stolen}`,
      expected: /^HTTP\/1\.1 204 (?![\s\S]*content-length)[\s\S]*\r\n\r\n$/i,
    },
    '/304': {
      bytes: `HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n${stolen}`,
      expected: /^HTTP\/1\.1 304 [\s\S]*\r\n\r\n$/,
    },
    '/head': {
      bytes: `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok${stolen}`,
      method: 'HEAD',
      expected: /Content-Length: 2\r\n[\s\S]*\r\n\r\n$/,
    },
  }
  const lobby = await startLobby(t, (socket, request) => void socket.write(responses[request.split(' ', 2)[1]!]!.bytes))
  for (const [path, { method, expected }] of Object.entries(responses)) {
    assert.match(await lobby.ask(path, 'Connection: close\r\n', method).end(), expected)
    await lobby.requireNext(path)
  }
})

test('unrequested bytes on a free connection close it, and reach no client', async (t) => {
  const lobby = await startLobby(t, () => {})
  const first = lobby.ask('/fine')
  await first.read((bytes) => bytes.endsWith('fine'))
  const [socket] = [...lobby.backend.open]
  socket!.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen')
  await lobby.requireNext('unasked')
})

test('a response without a length is complete when its connection ends, and broken when it is reset', async (t) => {
  const lobby = await startLobby(t, (socket, request) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\na part', () => {
      if (request.includes('/whole')) socket.end(' and the rest')
      else socket.resetAndDestroy()
    })
  })
  assert.match(
    await lobby.ask('/whole', 'Connection: close\r\n').end(),
    /Transfer-Encoding: chunked[\s\S]*and the rest\r\n0\r\n\r\n$/,
  )
  const old = await lobby.ask('/whole', '', 'GET', '1.0').end()
  assert.match(old, /\r\n\r\na part and the rest$/)
  assert.doesNotMatch(old, /transfer-encoding/i)
  assert.doesNotMatch(await lobby.ask('/broken').end(), /\r\n0\r\n\r\n$/)
  const broken = lobby.ask('/broken', '', 'GET', '1.0')
  const [error] = (await once(broken.socket, 'error')) as [NodeJS.ErrnoException]
  assert.equal(error.code, 'ECONNRESET')
})

test('a response that ends early breaks off for the client, whatever its framing', async (t) => {
  const lobby = await startLobby(t, (socket, request) => {
    const head = request.includes('/length') ? 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n' : CHUNKED
    const rest = { '/length': 'a part', '/chunks': '6\r\na part\r\n', '/bad': '6\r\na part\r\n' }
    const path = request.split(' ', 2)[1] as keyof typeof rest
    socket.write(head + rest[path], () => {
      if (path === '/bad') setImmediate(() => socket.write('nonsense\r\n'))
      else socket.end()
    })
  })
  for (const path of ['/length', '/chunks', '/bad']) {
    const response = await lobby.ask(path, 'Connection: close\r\n').end()
    assert.match(response, /^HTTP\/1\.1 (?:200 OK\r\n[\s\S]*a part|502 )/, path)
    assert.doesNotMatch(response, /0\r\n\r\n$/, path)
    await lobby.requireNext(path)
  }
})

test('an early response is forwarded, and the rest of the request confuses neither connection', async (t) => {
  const lobby = await startLobby(
    t,
    (socket) => void socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!'),
  )
  for (const rest of ['x'.repeat(10), 'GET /fine HTTP/1.1\r\n\r\n']) {
    const client = lobby.ask('/early', `Content-Length: ${4 + rest.length}\r\n`, 'POST')
    client.write('body')
    await client.read((bytes) => bytes.endsWith('no!'))
    await until('the connection to the lobby is closed', () => lobby.backend.open.size === 0)
    client.write(rest)
    client.write(`GET /fine HTTP/1.1\r\n${lobby.host}\r\n`)
    const all = await client.read((bytes) => bytes.endsWith('fine'))
    assert.equal(all.match(/HTTP\/1\.1 /g)?.length, 2)
    for (const socket of lobby.backend.open) socket.destroy()
  }
})

test('a response arrives unchanged, in whatever pieces it is received', async (t) => {
  let pieces: Buffer[] = []
  const lobby = await startLobby(t, (socket) => {
    const own = pieces
    const next = () => {
      const piece = own.shift()
      if (piece !== undefined) socket.write(piece, () => setImmediate(next))
    }
    next()
  })
  const content = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40_000 }), { maxLength: 4 })
  const interim = fc.constantFrom('', 'HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
  await fc.assert(
    fc.asyncProperty(
      content,
      interim,
      fc.boolean(),
      fc.array(fc.integer({ min: 1, max: 5_000 }), { maxLength: 8 }),
      async (parts, before, is_chunked, lengths) => {
        const whole = Buffer.concat(parts)
        const chunks = parts.flatMap((part) => [
          Buffer.from(`${part.length.toString(16)}\r\n`),
          part,
          Buffer.from('\r\n'),
        ])
        const head = is_chunked ? CHUNKED : `HTTP/1.1 200 OK\r\nContent-Length: ${whole.length}\r\n\r\n`
        const bytes = Buffer.concat([
          Buffer.from(before + head),
          ...(is_chunked ? [...chunks, Buffer.from('0\r\n\r\n')] : [whole]),
        ])
        pieces = []
        let at = 0
        for (const length of lengths) {
          pieces.push(bytes.subarray(at, at + length))
          at += length
        }
        pieces.push(bytes.subarray(at))
        const response = await lobby.ask('/', 'Connection: close\r\n').end()
        assert.match(response, /^HTTP\/1\.1 200 OK\r\n/)
        const sent = response.slice(response.indexOf('\r\n\r\n') + 4)
        const received = is_chunked ? chunksOf(sent) : sent
        assert.ok(Buffer.from(received, 'latin1').equals(whole))
      },
    ),
    { numRuns: 100, endOnFailure: true },
  )
})

function chunksOf(bytes: string): string {
  let body = ''
  for (let at = 0; ; ) {
    const line_end = bytes.indexOf('\r\n', at)
    const size = Number.parseInt(bytes.slice(at, line_end), 16)
    if (size === 0) return body
    body += bytes.slice(line_end + 2, line_end + 2 + size)
    at = line_end + 2 + size + 2
  }
}

test('pipelined requests get their responses in order, and the edge buffers only a bounded part of them', async (t) => {
  const AHEAD = 2_000
  const SENT_MAX = 64 * 1024 * 1024
  let response_count = 0
  const release = Promise.withResolvers<void>()
  const lobby = await startLobby(t, (socket, request) => {
    const respond = () =>
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n${String(response_count++).padStart(6, '0')}`)
    if (request.includes(' /wait ')) release.promise.then(respond)
    else if (request.includes(' /next ')) respond()
  })
  const next = `GET /next HTTP/1.1\r\n${lobby.host}\r\n`
  const client = lobby.ask('/wait')
  client.write(next.repeat(AHEAD))
  const unread = lobby.ask('/never')
  unread.write(Buffer.alloc(SENT_MAX, next))
  let [last, same] = [-1, 0]
  await until('no more bytes arrive', () => {
    same = unread.socket.writableLength === last ? same + 1 : 0
    last = unread.socket.writableLength
    return same > 40
  })
  assert.ok(last > SENT_MAX / 2, `${last} bytes are left to send`)
  unread.socket.destroy()
  release.resolve()
  const all = await client.read((bytes) => bytes.endsWith(String(AHEAD).padStart(6, '0')))
  const order = [...all.matchAll(/\r\n\r\n(\d{6})/g)].map(([, number]) => Number(number))
  assert.deepEqual(
    order,
    Array.from({ length: AHEAD + 1 }, (_, index) => index),
  )
})
