// The edge collects small bodies before it forwards their requests to a role.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SMALL_BODY_GRACE_MS } from '../../src/edge/limits.ts'
import { until } from '../support/until.ts'
import { errorOf, rawClient, startBackend, startTestEdge } from './platform.ts'

const head = (length: number, more = ''): string =>
  `POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n${more}\r\n`

test('a role gets a request once its small body is complete, unchanged', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const client = rawClient(t, edge.port)
  const body = Array.from({ length: 3_000 }, (_, i) => String.fromCharCode(33 + (i % 90))).join('')
  const whole = head(body.length) + body
  for (let at = 0; at < whole.length - 1; at += 7) {
    client.write(whole.slice(at, Math.min(at + 7, whole.length - 1)))
    if (at % 700 === 0) await new Promise(setImmediate)
  }
  // Another request overtakes the incomplete one.
  const other = rawClient(t, edge.port)
  other.write('GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await other.read((bytes) => bytes.endsWith('api'))
  assert.deepEqual(
    api.seen.map(({ url }) => url),
    ['/other'],
  )
  client.write(`${whole.slice(-1)}GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  await client.read((bytes) => bytes.split('HTTP/1.1 200').length === 3 && bytes.endsWith('api'))
  assert.deepEqual(
    api.seen.slice(1).map(({ url, body: seen }) => [url, seen]),
    [
      ['/x', body],
      ['/next', ''],
    ],
  )
})

test('a small body that arrives too slowly is refused with 408, and reaches no role', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const begun = performance.now()
  const slow = Array.from({ length: 20 }, () => rawClient(t, edge.port))
  for (const client of slow) client.write(`${head(60_000)}x`)
  const drip = setInterval(() => {
    for (const client of slow) if (client.socket.writable) client.write('x')
  }, 200)
  t.after(() => clearInterval(drip))
  for (const response of await Promise.all(slow.map((client) => client.end()))) {
    const { status, code, closes } = errorOf(response)
    assert.deepEqual([status, code, closes], [408, 'API_REQUEST_TIMEOUT', true])
  }
  assert.ok(performance.now() - begun >= SMALL_BODY_GRACE_MS)
  assert.equal(api.seen.length, 0)
})

test('a client that expects 100 Continue gets it once, also for a small body', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const client = rawClient(t, edge.port)
  client.write(head(4, 'Expect: 100-continue\r\n'))
  await client.read((bytes) => bytes.startsWith('HTTP/1.1 100 Continue\r\n\r\n'))
  client.write('body')
  const response = await client.read((bytes) => bytes.endsWith('api'))
  assert.equal(response.match(/HTTP\/1\.1 /g)?.length, 2)
  assert.equal(api.seen[0]?.body, 'body')
})

test('a client that disconnects while its body is collected leaves nothing behind', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const client = rawClient(t, edge.port)
  client.write(`${head(60_000)}x`)
  client.socket.end()
  await client.end()
  const other = rawClient(t, edge.port)
  other.write(`${head(4)}body`)
  await other.read((bytes) => bytes.endsWith('api'))
  await until('the role has seen one request', () => api.seen.length === 1)
})
