import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { measureRegions } from './regions.ts'
import { refusal, startTestPlatform } from './test-platform.ts'

/** An edge that responds to its requests one after the other, each after one of the times; then not at all. */
async function startEdge(t: TestContext, delays_ms: number[], status = 204) {
  const edge = { url: '', request_count: 0 }
  const server = createServer((_request, response: ServerResponse) => {
    const delay_ms = delays_ms[edge.request_count++]
    response.statusCode = status
    if (delay_ms !== undefined) setTimeout(() => response.end(), delay_ms)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  edge.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ping`
  return edge
}

const region = (region_id: string, ...edges: { url: string }[]) => ({
  region_id,
  ping_addresses: edges.map(({ url }) => ({ url })),
})

test('each region is measured three times, after a request that only opens the connection, and the best counts', async (t) => {
  const platform = await startTestPlatform(t)
  const edge = await startEdge(t, [0, 300, 60, 300])
  platform.answer({ status: 200, body: { regions: [region('near', edge), { region_id: 'old' }, region('empty')] } })
  const { near, ...others } = await measureRegions({ matchmaker_url: platform.url, token: 'pub_prod.x' })
  assert.ok(near !== undefined && near >= 59 && near < 290, `${near}`)
  assert.deepEqual(others, {}, 'a region without an address is left out')
  assert.equal(edge.request_count, 4)
  assert.equal(platform.asked[0]?.path, '/matchmaker/regions')
  assert.equal(platform.asked[0]?.headers.authorization, 'Bearer pub_prod.x')
})

test('after two seconds what was measured counts, and an address is asked once for all its regions', async (t) => {
  const platform = await startTestPlatform(t)
  const [fast, stuck, silent] = [await startEdge(t, [0, 0, 0, 0]), await startEdge(t, [0, 100]), await startEdge(t, [])]
  const failing = await startEdge(t, [0, 0, 0, 0], 502)
  const regions = [region('a', fast), region('b', fast, stuck), region('c', silent), region('d', failing)]
  platform.answer({ status: 200, body: { regions } })
  const begin = performance.now()
  const { a, b, ...others } = await measureRegions({ matchmaker_url: platform.url })
  const lasted_ms = performance.now() - begin
  assert.ok(lasted_ms >= 1_900 && lasted_ms < 4_000, `${lasted_ms} ms`)
  assert.deepEqual(others, {})
  assert.ok(a !== undefined && b !== undefined && b >= 99 && a < b, `${a} ${b}: the slowest address of a region counts`)
  assert.equal(fast.request_count, 4)
})

test('a refused list throws, and the signal of the caller ends a measurement', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer(refusal(401, 'TOKEN_INVALID'))
  await assert.rejects(measureRegions({ matchmaker_url: platform.url }), { code: 'TOKEN_INVALID' })
  const silent = await startEdge(t, [])
  platform.answer({ status: 200, body: { regions: [region('a', silent)] } })
  const leave = new AbortController()
  const measured = measureRegions({ matchmaker_url: platform.url, signal: leave.signal })
  while (silent.request_count === 0) await new Promise((resolve) => setImmediate(resolve))
  leave.abort()
  await assert.rejects(measured, { name: 'AbortError' })
})
