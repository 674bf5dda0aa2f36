import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '@musterhost/contract'
import { headerOf, linesWithout } from '@musterhost/contract/edge'
import fc from 'fast-check'
import { readRequestHead } from './head.ts'
import { linesOf } from './headers.ts'
import { readResponseHead } from './response-head.ts'

const request = (lines: string, first = 'GET / HTTP/1.1') => {
  const bytes = Buffer.from(`before${first}\r\n${lines}\r\nbehind`, 'latin1')
  return readRequestHead(bytes, 'before'.length, bytes.length - '\r\nbehind'.length)
}
const response = (lines: string, to_head = false) => {
  const bytes = Buffer.from(`HTTP/1.1 200 OK\r\n${lines}\r\n`, 'latin1')
  return readResponseHead(bytes, 0, bytes.length - 2, { to_head, allowed: null })
}

test('lines without a meaning for the edge are forwarded unchanged, with one kind of white space', () => {
  const kept = 'Host: a\r\nX-One: 1\r\nuser-agent: b c\r\nX-Two: \xe9\r\n'
  assert.equal(request(kept).lines, kept)
  assert.equal(request('Host: a\r\nX:1\r\nY:\t 2 \t\r\nZ:\r\n').lines, 'Host: a\r\nX: 1\r\nY: 2\r\nZ: \r\n')
})

test('headers of one connection, and headers that only the edge may set, are dropped', () => {
  const dropped = [
    ...['Connection: keep-alive', 'Keep-Alive: timeout=1', 'TE: trailers', 'Trailer: x', 'Proxy-Connection: x'],
    ...['X-Forwarded-For: 1.1.1.1', 'X-Forwarded-Anything: x', 'x_forwarded_for: 1.1.1.1', 'X-Real-IP: 1.1.1.1'],
    ...['X-Muster-Edge: x', 'X_Muster_Edge: x', 'Forwarded: for=x', 'Content_Length: 7', 'Transfer_Encoding: x'],
    ...['Upgrade: h2c', 'HTTP2-Settings: x', 'Expect: 100-continue'],
  ]
  const kept = ['Host: a', 'Accept: b', 'X-Forwarder: c', 'Expectation: d', 'Contents: e']
  fc.assert(
    fc.property(fc.shuffledSubarray([...dropped, ...kept], { minLength: dropped.length + kept.length }), (all) => {
      const head = request(`${all.join('\r\n')}\r\n`)
      assert.deepEqual(
        head.lines.split('\r\n').slice(0, -1),
        all.filter((line) => kept.includes(line)),
      )
    }),
  )
  assert.equal(
    request('Host: a\r\nConnection: close, X-Own\r\nx-own: 1\r\nCookie: c\r\n').lines,
    'Host: a\r\nCookie: c\r\n',
  )
})

test('a connection continues as HTTP/1.1 and HTTP/1.0 define', () => {
  const cases = [
    ['GET / HTTP/1.1', '', true],
    ['GET / HTTP/1.1', 'Connection: Close\r\n', false],
    ['GET / HTTP/1.1', 'Connection: x\r\nConnection: close\r\n', false],
    ['GET / HTTP/1.1', 'Connection: x-close\r\n', true],
    ['GET / HTTP/1.0', '', false],
    ['GET / HTTP/1.0', 'Connection: keep-alive\r\n', true],
    ['GET / HTTP/1.0', 'Connection: close, keep-alive\r\n', false],
    ['GET / HTTP/1.0', 'Connection: keep-alive\r\nConnection: Close\r\n', false],
    ['GET / HTTP/1.1', 'Connection: keep-alive, close\r\n', false],
  ] as const
  for (const [first, lines, keeps_alive] of cases) {
    assert.equal(request(lines, first).keeps_alive, keeps_alive, first + lines)
  }
})

test('a tab beside a length or a transfer coding is refused, because parsers disagree about it', () => {
  for (const value of ['\t5', '5\t', ' \t5', '5 \t ']) {
    assert.throws(() => request(`Content-Length:${value}\r\n`), ApiError)
    assert.equal(response(`Content-Length:${value}\r\n`), null)
    const coding = value.replace('5', 'chunked')
    assert.throws(() => request(`Transfer-Encoding:${coding}\r\n`), ApiError)
    assert.equal(response(`Transfer-Encoding:${coding}\r\n`), null)
  }
  assert.equal(request('Content-Length:  5  \r\n').framing, 5)
})

test('a response has its stated framing, unless it can have no body', () => {
  assert.equal(response('Content-Length: 7\r\n')?.framing, 7)
  assert.equal(response('Transfer-Encoding: Chunked\r\n')?.framing, 'chunked')
  assert.equal(response('')?.framing, 'until_end')
  assert.equal(response('Connection: keep-alive, close\r\n')?.keeps_alive, false)
  assert.equal(response('Content-Length: 7\r\n', true)?.framing, 'none')
  assert.equal(response('Content-Length: 7\r\n', true)?.lines, 'Content-Length: 7\r\n')
  assert.equal(response('Content-Length: 7\r\nTransfer-Encoding: chunked\r\n'), null)
})

test('headers are found only by their whole name', () => {
  const head = request('Host: a\r\nX-Range: no\r\nrange: bytes=0-1\r\nX: range: no\r\nRange: b\r\n')
  assert.equal(headerOf(head, 'range'), 'bytes=0-1, b')
  assert.equal(headerOf(head, 'cookie'), undefined)
  assert.equal(
    linesWithout(head.lines, (name, value) => name === 'range' || value === 'a'),
    'X-Range: no\r\nX: range: no\r\n',
  )
})

test('only a well-formed head is accepted, and no header of the edge breaks a line', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
      const lines = Buffer.from(noise).toString('latin1')
      try {
        const head = request(`${lines}\r\n`)
        for (const line of head.lines.split('\r\n').slice(0, -1))
          assert.match(line, /^[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e\x80-\xff]*$/)
      } catch (error) {
        assert.ok(error instanceof ApiError)
      }
    }),
    { numRuns: 2_000 },
  )
  for (const value of ['a\r\nb', 'a\nb', 'a\0', '\u{1f600}'])
    assert.throws(() => linesOf(['x', value]), /invalid value/)
})
