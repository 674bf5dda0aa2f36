// Generated requests, many of them malformed, written in random pieces. The backend must receive the requests that were
// sent, in that order, and as many as the edge has responded to. An independent reader, which only knows how requests are
// framed, determines what was sent.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ReadRequest } from '../fuzz/edge/read.ts'
import { readSent } from '../fuzz/edge/read-sent.ts'
import { rawClient, startTestEdge } from './platform.ts'
import { bodyOf, startStrictBackend } from './strict-backend.ts'

const RUNS = 300

const text = fc.stringMatching(/^[\x21-\x7e]([\x20-\x7e\t]{0,20}[\x21-\x7e])?$/)
const bytesOf = (maxLength: number) => fc.uint8Array({ maxLength }).map((all) => Buffer.from(all).toString('latin1'))
const body = fc.oneof({ weight: 9, arbitrary: bytesOf(300) }, { weight: 1, arbitrary: bytesOf(60_000) })
const framed = fc.oneof(
  fc.constant({ lines: '', bytes: '' }),
  body.map((bytes) => ({ lines: `Content-Length: ${bytes.length}\r\n`, bytes })),
  fc
    .tuple(
      fc.array(
        body.filter((bytes) => bytes !== ''),
        { maxLength: 4 },
      ),
      fc.constantFrom('', ';a', ';a="b c"'),
      fc.boolean(),
    )
    .map(([chunks, extension, has_trailers]) => ({
      lines: 'transfer-encoding: Chunked\r\n',
      bytes: `${chunks.map((chunk) => `${chunk.length.toString(16)}${extension}\r\n${chunk}\r\n`).join('')}0\r\n${has_trailers ? 'X-After: 1\r\n' : ''}\r\n`,
    })),
)
const request = fc
  .record({
    method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH'),
    path: fc.stringMatching(/^\/[a-z0-9/?=&%.~-]{0,20}$/),
    headers: fc.array(
      fc.tuple(fc.stringMatching(/^X[A-Za-z0-9_-]{0,12}$/), text, fc.constantFrom(': ', ':', ':\t', ':  ')),
      { maxLength: 5 },
    ),
    framed,
  })
  .map(({ method, path, headers, framed }) => {
    const lines = headers.map(([name, value, colon]) => `${name}${colon}${value}\r\n`).join('')
    return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${lines}${framed.lines}\r\n${framed.bytes}`
  })
const requests = fc.array(request, { minLength: 1, maxLength: 4 }).map((all) => all.join(''))

const NASTY = [
  ...['\r', '\n', '\r\n', '\0', ' ', '\t', ':', ';', '0', '-', '\x0b', '\x7f', '\xff'],
  ...[
    'Content-Length: 5\r\n',
    'Content-Length : 5\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Transfer_Encoding: chunked\r\n',
  ],
  ...['Connection: close\r\n', 'Connection: host, content-length\r\n', 'Expect: 100-continue\r\n', 'Upgrade: h2c\r\n'],
  ...['0\r\n\r\n', '\r\n\r\n', ' HTTP/1.1\r\n', 'GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n'],
]
const mutation = fc.record({
  at: fc.nat(),
  removed: fc.constantFrom(0, 0, 1, 2, 10),
  put_in: fc.oneof(fc.constantFrom(...NASTY), fc.constant(''), bytesOf(3)),
})
const mutated = fc.tuple(requests, fc.array(mutation, { minLength: 1, maxLength: 3 })).map(([bytes, mutations]) =>
  mutations.reduce((all, { at, removed, put_in }) => {
    const place = at % (all.length + 1)
    return `${all.slice(0, place)}${put_in}${all.slice(place + removed)}`
  }, bytes),
)
const pieces = fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 6 })

test('the backend receives the requests that were sent, and no others', async (t) => {
  const backend = await startStrictBackend(t)
  const edge = await startTestEdge(t, { api_port: backend.port, matchmaker_port: backend.port })

  const send = async (bytes: string, lengths: number[]) => {
    backend.requests.length = 0
    const client = rawClient(t, edge.port)
    const sent = readSent(bytes).requests
    let at = 0
    for (const length of lengths) {
      client.write(Buffer.from(bytes.slice(at, at + length), 'latin1'))
      at += length
      await new Promise((resolve) => setImmediate(resolve))
    }
    client.write(Buffer.from(bytes.slice(at), 'latin1'))
    const isDone = (response: string) => statusesOf(response).length >= sent.length
    // The connection may be refused and closed before. A client that ends its side counts as gone.
    await client.read(isDone).catch(() => '')
    client.socket.end()
    const statuses = statusesOf(await client.end())
    const seen = backend.requests.map((request) => {
      const [method = '', target = ''] = request.split(' ', 2)
      assert.equal(request.match(/^x-forwarded-for: 127\.0\.0\.1\r$/gim)?.length, 1)
      assert.doesNotMatch(
        request.slice(0, request.indexOf('\r\n\r\n')),
        /^(?:upgrade|expect|x[-_]forwarded[-_]host):/im,
      )
      return { method, target, body: bodyOf(request) }
    })
    return { sent: sent.map(({ at: _, ...request }) => request), seen, statuses }
  }

  await t.test('whole requests arrive unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(requests, pieces, async (bytes, lengths) => {
        const { sent, seen, statuses } = await send(bytes, lengths)
        assert.deepEqual({ seen, statuses }, { seen: sent, statuses: sent.map(() => '200') })
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
  })

  await t.test('of malformed ones no more arrive than were sent, and each gets its response', async () => {
    await fc.assert(
      fc.asyncProperty(mutated, pieces, async (bytes, lengths) => {
        const { sent, seen, statuses } = await send(bytes, lengths)
        let next = 0
        for (const request of seen) {
          while (next < sent.length && !isEqual(sent[next]!, request)) next++
          assert.ok(next < sent.length, `the backend has seen ${JSON.stringify(request)}`)
          next++
        }
        assert.equal(statuses.filter((status) => status === '200').length, seen.length)
        assert.ok(
          statuses.every((status) => Number(status) < 500),
          statuses.join(),
        )
      }),
      { numRuns: RUNS * 2, endOnFailure: true },
    )
  })
})

function statusesOf(responses: string): string[] {
  return [...responses.matchAll(/HTTP\/1\.1 (?!100)(\d{3}) /g)].map(([, status]) => status!)
}

function isEqual(a: ReadRequest, b: ReadRequest): boolean {
  return a.method === b.method && a.target === b.target && a.body === b.body
}
