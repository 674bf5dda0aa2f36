import assert from 'node:assert'
import { test } from 'node:test'
import { HEADER_CHECK_MS, HEADER_MS_MAX } from '../../src/edge/limits.ts'
import { errorOf, rawClient, startBackend, startTestEdge } from './platform.ts'

test('a header that does not come to its end is cut off, and nobody else notices', async (t) => {
  const SLOW = 200
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const begun = performance.now()
  const slow = Array.from({ length: SLOW }, () => rawClient(t, edge.port))
  for (const client of slow) client.write('GET / HTTP/1.1\r\nHost: localhost\r\nX')
  const silent = rawClient(t, edge.port)
  const drip = setInterval(() => {
    for (const client of slow) if (client.socket.writable) client.write('x')
  }, 500)
  t.after(() => clearInterval(drip))

  const player = rawClient(t, edge.port)
  player.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await player.read((bytes) => bytes.endsWith('api'))

  for (const answer of await Promise.all(slow.map((client) => client.end()))) {
    const { status, code, closes } = errorOf(answer)
    assert.deepEqual([status, code, closes], [408, 'API_REQUEST_TIMEOUT', true])
  }
  await silent.end()
  // The machine may be busy; a header that was never cut off would not have come to its end at all.
  assert.ok(performance.now() - begun >= HEADER_MS_MAX - HEADER_CHECK_MS)
  assert.equal(api.seen.length, 1)
})
