// The two ends of a trunk against each other, and each against an end that does not keep to the protocol.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { FRAMES, FrameBatch, STREAM_CREDIT_BYTES } from '../../src/wire/trunk-frames.ts'
import { until } from '../support/until.ts'
import { bodyOf, listen, openTrunk, PROOF, startEdgeEnd, startPair } from './trunk-pair.ts'

const MIB = 1024 * 1024
const LARGE = 'x'.repeat(MIB)

const echo = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { method, url, headers } = request
  const body = JSON.stringify({ method, url, headers, body: await text(request) })
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body)
}

/** `/large` gets a large response, `/wait` none before `end` is called. */
function waitingRole() {
  const waiting = new Map<string, ServerResponse>()
  const gone: string[] = []
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const { url = '' } = request
    response.once('close', () => {
      if (!response.writableEnded) gone.push(url)
    })
    if (url === '/large') response.writeHead(200, { 'content-length': LARGE.length }).end(LARGE)
    else if (url.startsWith('/wait')) waiting.set(url, response)
    else response.writeHead(200, { 'content-length': 2 }).end('ok')
  }
  return { handle, gone, waiting, end: (url: string) => waiting.get(url)!.end('late') }
}

test('a request arrives over a trunk as over HTTP, with what the edge knows of its client', async (t) => {
  const { ask } = await startPair(t, (...exchange) => void echo(...exchange))
  const lines =
    'Host: a.example\r\nX-One: 1\r\nx-one: 2\r\nCookie: a=b\r\ncookie: c=d\r\nConstructor: e\r\nX-Empty: \r\n'
  const asked = ask('/a?b=c', { body: 'the body', lines })
  await until('the response', async () => asked.is_over)
  assert.deepEqual([asked.response?.status, asked.response?.lines], [200, linesOf(asked.response?.body_length)])
  assert.deepEqual(JSON.parse(bodyOf(asked)), {
    method: 'POST',
    url: '/a?b=c',
    headers: {
      ...{ host: 'a.example', 'x-one': '1, 2', cookie: 'a=b; c=d', constructor: 'e', 'x-empty': '' },
      ...{ 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'https', 'x-muster-edge': PROOF },
      ...{ 'x-ray-id': 'a-ray', 'content-length': '8' },
    },
    body: 'the body',
  })
})

const linesOf = (length: unknown): string => `content-type: application/json\r\ncontent-length: ${length}\r\n`

test('a client that does not read its response gets only its beginning, and delays nobody else', async (t) => {
  const { handle } = waitingRole()
  const { ask } = await startPair(t, handle)
  const slow = Array.from({ length: 50 }, () => ask('/large', { reads: false }))
  const fast = [ask('/large'), ...Array.from({ length: 100 }, () => ask('/small'))]
  await until('the others have their responses', async () => fast.every(({ is_over }) => is_over))
  assert.equal(bodyOf(fast[0]!), LARGE)
  await until('each slow client has its credit', async () =>
    slow.every((asked) => bodyOf(asked).length === STREAM_CREDIT_BYTES),
  )
  const [first] = slow
  assert.equal(first!.is_over, false)
  first!.reads = true
  first!.stream!.trunk.credit(first!.stream!)
  await until('the slow client reads on', async () => first!.is_over)
  assert.equal(bodyOf(first!), LARGE)
})

test('a handler that streams is paused for a client that does not read, and ends with it', async (t) => {
  let written = 0
  let is_closed = false
  const { ask } = await startPair(t, (_request, response) => {
    response.writeHead(200, {})
    response.once('close', () => {
      is_closed = true
    })
    const piece = Buffer.alloc(8 * 1024, 'y')
    const write = (): void => {
      while (written < 2 * MIB) {
        written += piece.length
        if (!response.write(piece)) return
      }
      response.end()
    }
    response.on('drain', write)
    write()
  })
  const slow = ask('/stream', { reads: false })
  await until('the credit is used', async () => bodyOf(slow).length === STREAM_CREDIT_BYTES)
  assert.ok(written < MIB, `${written} bytes were written`)
  assert.equal(slow.response?.body_length, null)
  slow.reads = true
  slow.stream!.trunk.credit(slow.stream!)
  await until('the whole response', async () => slow.is_over)
  assert.deepEqual([bodyOf(slow).length, slow.events.at(-1)], [2 * MIB, 'done'])
  written = 0
  is_closed = false
  const gone = ask('/stream', { reads: false })
  await until('the beginning', async () => gone.received.length > 0)
  gone.stream!.trunk.cancel(gone.stream!)
  await until('the handler has ended', async () => is_closed)
})

test('a header that no response can have is refused to the handler that sets it', async (t) => {
  const { ask } = await startPair(t, (_request, response) => {
    assert.throws(() => response.writeHead(200, { 'x-a': 'b\r\nx-c: d' }), /invalid header x-a/)
    assert.throws(() => response.writeHead(200, { 'x a': 'b' }), /invalid header x a/)
    response.setHeader('x-set', 'before')
    response.end('ok')
  })
  const asked = ask('/a')
  await until('the response', async () => asked.is_over)
  assert.deepEqual([asked.response?.lines, bodyOf(asked)], ['x-set: before\r\n', 'ok'])
})

test('a request that takes long is said to wait, and its caller can hang up', async (t) => {
  const { handle, gone, waiting, end } = waitingRole()
  const { ask } = await startPair(t, handle)
  const [first, second] = [ask('/wait/1'), ask('/wait/2')]
  const quick = ask('/small')
  await until('both wait', async () => [first, second].every(({ events }) => events[0] === 'waits'))
  assert.deepEqual(quick.events, ['done'])
  first.stream!.trunk.cancel(first.stream!)
  await until('the role knows it', async () => gone.length > 0)
  assert.deepEqual(gone, ['/wait/1'])
  end('/wait/1')
  end('/wait/2')
  await until('the other response', async () => second.is_over)
  assert.deepEqual([first.events, bodyOf(first), bodyOf(second)], [['waits'], '', 'late'])
  assert.equal(waiting.size, 2)
})

test('a request that is given up before it is sent never reaches the role', async (t) => {
  const seen: string[] = []
  const { ask } = await startPair(t, (request, response) => {
    seen.push(request.url!)
    response.end()
  })
  const first = ask('/first')
  const given_up = ask('/given-up')
  given_up.stream!.trunk.cancel(given_up.stream!)
  await until('the first response', async () => first.is_over)
  assert.deepEqual(seen, ['/first'])
})

test('when a role ends, what was sent is lost and what was not may be sent again', async (t) => {
  const { handle, gone } = waitingRole()
  const { ask, edge, address } = await startPair(t, handle)
  const sent = ask('/wait/1')
  await until('the role has it', async () => sent.events[0] === 'waits')
  const unsent = ask('/never')
  edge.drop(address)
  await until('both have ended', async () => sent.is_over && unsent.is_over)
  assert.deepEqual([sent.events, unsent.events], [['waits', 'lost'], ['unsent']])
  await until('the role knows it', async () => gone.length > 0)
  const next = ask('/small')
  await until('another trunk', async () => next.is_over)
  assert.equal(bodyOf(next), 'ok')
})

test('a stopping role ends what it has, and wants no more over its trunk', async (t) => {
  const { handle, waiting, end } = waitingRole()
  const { ask, role } = await startPair(t, handle)
  const waits = ask('/wait/1')
  await until('the request is there', async () => waiting.size > 0)
  const closing = role.close()
  const stopped = await until('the edge knows it', async () => {
    const next = ask('/small')
    await new Promise(setImmediate)
    return next.events[0] === 'absent' ? next : null
  })
  assert.equal(stopped.stream, null)
  end('/wait/1')
  await closing
  await until('the response', async () => waits.is_over)
  assert.equal(bodyOf(waits), 'late')
})

test('a role of another build is asked over HTTP, and again later', async (t) => {
  let versions = '9'
  let asked_count = 0
  const server = createServer({ shouldUpgradeCallback: () => true }, echo)
  server.on('upgrade', (_request, socket) => {
    asked_count++
    socket.on('error', () => {})
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nx-muster-trunk: ${versions}\r\n\r\n`)
  })
  const address = { hostname: '127.0.0.1', port: await listen(t, server) }
  const { ask, tick } = startEdgeEnd(t, address)
  for (const answer of ['9', '0', 'x']) {
    versions = answer
    const first = ask('/a')
    await until('the answer of the role', async () => first.is_over)
    assert.deepEqual([first.events, ask('/a').events], [['absent'], ['absent']])
    for (let count = 0; count < 6; count++) tick()
  }
  assert.equal(asked_count, 3)
  const plain = createServer((_request, response) => response.end())
  const other = startEdgeEnd(t, { hostname: '127.0.0.1', port: await listen(t, plain) })
  const asked = other.ask('/a')
  await until('the response of a role without trunks', async () => asked.is_over)
  assert.deepEqual(asked.events, ['absent'])
})

test('a role that is down refuses its requests unsent', async (t) => {
  const server = createServer()
  const port = await listen(t, server)
  server.close()
  await once(server, 'close')
  const { ask } = startEdgeEnd(t, { hostname: '127.0.0.1', port })
  const asked = ask('/a')
  await until('the refusal', async () => asked.is_over)
  assert.deepEqual(asked.events, ['unsent ECONNREFUSED'])
})

test('a role that is silent is found out, and its requests are lost', async (t) => {
  const server = createServer({ shouldUpgradeCallback: () => true })
  const bytes: Buffer[] = []
  server.on('upgrade', (_request, socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => void bytes.push(chunk))
    socket.write('HTTP/1.1 101 Switching Protocols\r\nx-muster-trunk: 1\r\n\r\n')
  })
  const { ask, tick } = startEdgeEnd(t, { hostname: '127.0.0.1', port: await listen(t, server) })
  const asked = ask('/a')
  await until('the request', async () => bytes.length > 0)
  const pass = async (seconds: number): Promise<void> => {
    for (let count = 0; count < seconds; count++) {
      tick()
      await new Promise(setImmediate)
    }
  }
  await pass(30)
  assert.equal(asked.is_over, false)
  await pass(15)
  await until('the end', async () => asked.is_over)
  assert.deepEqual(asked.events, ['lost'])
  const kinds = kindsIn(Buffer.concat(bytes))
  assert.deepEqual(kinds.slice(0, 3), [FRAMES.request, FRAMES.ping, FRAMES.ping])
})

function kindsIn(bytes: Buffer): number[] {
  const kinds: number[] = []
  for (let at = 0; at < bytes.length; at += 9 + bytes.readUInt32BE(at)) kinds.push(bytes[at + 4]!)
  return kinds
}

test('a trunk with waiting requests is kept alive by pings', async (t) => {
  const { handle, end } = waitingRole()
  const { ask, tick } = await startPair(t, handle)
  const asked = ask('/wait/1')
  await until('it waits', async () => asked.events[0] === 'waits')
  for (let count = 0; count < 100; count++) {
    tick()
    // A ping and its pong.
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
  }
  assert.equal(asked.is_over, false)
  end('/wait/1')
  await until('the response', async () => asked.is_over)
  assert.equal(bodyOf(asked), 'late')
})

const fields = { client_ip: '', ray_id: '', is_secure: false, has_length: false, asks_shard: false }
const asks = (number: number, lines = ''): ((batch: FrameBatch) => void) => {
  return (batch) => batch.request(number, { method: 'GET', path: '/wait', lines, ...fields }, '')
}

const BAD_FOR_ROLES: Record<string, (batch: FrameBatch) => void> = {
  'an unknown kind': (batch) => batch.mark(99, 1),
  'a response': (batch) => batch.body(1, Buffer.from('x'), true),
  'stream 0': asks(0),
  'a request without fields': (batch) => batch.mark(FRAMES.request, 1),
  'lines without a colon': asks(1, 'Host\r\n'),
  'lines without an end': asks(1, 'Host: a'),
  'a stream twice': (batch) => {
    asks(1)(batch)
    asks(1)(batch)
  },
  'credit for a stream that never was': (batch) => batch.credit(5, 1),
  'credit of nothing': (batch) => {
    asks(1)(batch)
    batch.credit(1, 0)
  },
  'a request after the last one': (batch) => {
    batch.mark(FRAMES.stopped)
    asks(1)(batch)
  },
}

test('a bad frame closes the trunk at the role, ends its requests and nothing else', async (t) => {
  const { handle, gone } = waitingRole()
  const { ask, address } = await startPair(t, handle)
  const other = ask('/wait/other')
  await until('the other trunk', async () => other.events[0] === 'waits')
  for (const [name, write] of Object.entries(BAD_FOR_ROLES)) {
    const socket = await openTrunk(t, address.port)
    const batch = new FrameBatch()
    write(batch)
    socket.write(batch.take())
    await Promise.race([once(socket, 'close'), new Promise((_, reject) => setTimeout(reject, 5_000, new Error(name)))])
  }
  assert.ok(gone.includes('/wait'))
  assert.equal(other.is_over, false)
  const next = ask('/small')
  await until('the role goes on', async () => next.is_over)
})

const head = { lines: 'a: b\r\n', body_length: null, ray_kept: null, shard: null }
const BAD_FOR_EDGES: Record<string, (batch: FrameBatch) => void> = {
  'an unknown kind': (batch) => batch.mark(99, 1),
  'a request': asks(1),
  'a status below 200': (batch) => batch.response(1, { ...head, status: 101 }, Buffer.alloc(0), true),
  'a body before its head': (batch) => batch.body(1, Buffer.from('x'), true),
  'a second head': (batch) => {
    batch.response(1, { ...head, status: 200 }, Buffer.alloc(0), false)
    batch.response(1, { ...head, status: 200 }, Buffer.alloc(0), false)
  },
  'waiting after a head': (batch) => {
    batch.response(1, { ...head, status: 200 }, Buffer.alloc(0), false)
    batch.mark(FRAMES.waits, 1)
  },
  'a stream that never was': (batch) => batch.mark(FRAMES.reset, 7),
}

test('a bad frame closes the trunk at the edge, and its requests are lost', async (t) => {
  for (const [name, write] of Object.entries(BAD_FOR_EDGES)) {
    const server = createServer({ shouldUpgradeCallback: () => true })
    server.on('upgrade', (_request, socket) => {
      socket.on('error', () => {})
      socket.write('HTTP/1.1 101 Switching Protocols\r\nx-muster-trunk: 1\r\n\r\n')
      socket.once('data', () => {
        const batch = new FrameBatch()
        write(batch)
        socket.write(batch.take())
      })
    })
    const { ask } = startEdgeEnd(t, { hostname: '127.0.0.1', port: await listen(t, server) })
    const asked = ask('/a')
    await until(`${name}: the end`, async () => asked.is_over)
    assert.equal(asked.events.at(-1), 'lost', name)
  }
})

test('only an edge with the proof gets a trunk', async (t) => {
  const { role } = await startPair(t, echo)
  const headers = { upgrade: 'muster-trunk', 'x-muster-edge': PROOF, 'x-muster-trunk': '1-1' }
  assert.equal(role.isTrunk({ headers } as never), true)
  for (const other of [
    { ...headers, 'x-muster-edge': 'guessed' },
    { ...headers, upgrade: 'websocket' },
    { ...headers, 'x-muster-trunk': '2-9' },
  ]) {
    assert.equal(role.isTrunk({ headers: other } as never), false)
  }
})
