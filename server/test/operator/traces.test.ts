import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { readConfig } from '../../src/config/read-config.ts'
import { newId } from '../../src/ids.ts'
import type { RayPart } from '../../src/observe/recorder.ts'
import { createTraceExport } from '../../src/observe/trace-export.ts'
import { MODES } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

type Attribute = { key: string; value: { stringValue: string } }
type Span = {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes?: Attribute[]
  status?: { code: number; message: string }
}
type Traces = {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: Span[] }[] }[]
}

/** A collector: it takes what has its token, at first with a failure. */
async function startCollector(t: TestContext): Promise<{ url: string; spans: () => Span[]; refusals: () => number }> {
  const taken: Traces[] = []
  let refusal_count = 0
  const server = createServer(async (req, res) => {
    const traces = (await json(req)) as Traces
    const is_good = req.method === 'POST' && req.url === '/v1/traces' && req.headers['x-token'] === 'of the collector'
    if (!is_good || refusal_count === 0) {
      refusal_count++
      res.writeHead(503).end()
      return
    }
    taken.push(traces)
    res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    spans: () =>
      taken.flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap((part) => part.scopeSpans.flatMap(({ spans }) => spans)),
      ),
    refusals: () => refusal_count,
  }
}

test('rays are exported to a collector of OpenTelemetry: a trace each, with its phases', async (t) => {
  const collector = await startCollector(t)
  const env = { MUSTER_OTLP_URL: collector.url, MUSTER_OTLP_HEADERS: 'x-token=of the collector' }
  const platform = await startPlatform(t, { env })
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  await until('a failure of the collector', () => collector.refusals() === 1)

  const ask = (game_modes: string[]): Promise<Response> =>
    fetch(`${platform.matchmaker_url}/matchmaker/lobbies/find`, {
      method: 'POST',
      headers: { authorization: `Bearer ${game.public_token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ game_modes }),
    })
  for (const [answer, code] of [
    [await ask(['default']), null],
    [await ask(['none']), 'MATCHMAKER_GAME_MODE_NOT_FOUND'],
  ] as const) {
    const trace_id = answer.headers.get('x-ray-id')!.replaceAll('-', '')
    const body = (await answer.json()) as { code?: string }
    const all = await until('the trace', () => {
      const spans = collector.spans().filter(({ traceId }) => traceId === trace_id)
      return spans.length > 0 && spans
    })
    const [root, ...more] = all.filter(({ parentSpanId }) => parentSpanId === undefined)
    assert.equal(more.length, 0)
    assert.equal(root!.name, 'lobbies.find')
    assert.equal(root!.status?.message ?? null, code === null ? null : body.code)
    const owner = root!.attributes?.find(({ key }) => key === 'muster.namespace_id')?.value.stringValue
    assert.equal(owner, game.namespace_id)
    const phases = all.filter(({ parentSpanId }) => parentSpanId !== undefined)
    assert.ok(phases.some(({ name }) => name === 'auth'))
    // They follow on each other, from the beginning to the end.
    let at = BigInt(root!.startTimeUnixNano)
    for (const { parentSpanId, startTimeUnixNano, endTimeUnixNano } of phases) {
      assert.equal(parentSpanId, root!.spanId)
      assert.equal(BigInt(startTimeUnixNano), at)
      at = BigInt(endTimeUnixNano)
    }
    assert.equal(at, BigInt(root!.endTimeUnixNano))
    assert.equal(new Set(all.map(({ spanId }) => spanId)).size, all.length)
  }
})

test('the log has when a collector begins to refuse, once a minute what that costs, and when it is over', async (t) => {
  const lines: { level: number; lost_count?: number; err?: { message: string } }[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]) })
  let [now_ms, status, asked] = [0, 503, 0]
  const server = createServer((req, res) => {
    asked++
    req.resume()
    res.writeHead(status).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const traces = createTraceExport({ url, headers: {} }, { log, elapsed: () => now_ms })
  t.after(() => traces.close())
  const sendTwo = (): Promise<void> => {
    traces.take(PART)
    traces.take(PART)
    return traces.flush()
  }
  await sendTwo()
  await sendTwo()
  now_ms += 60_000
  await sendTwo()
  status = 200
  await sendTwo()
  await sendTwo()
  assert.equal(asked, 5)
  assert.deepEqual(
    lines.map(({ level, lost_count, err }) => [level, lost_count, err?.message]),
    [
      [40, 2, 'The collector responds with 503.'],
      [40, 4, 'The collector responds with 503.'],
      [30, undefined, undefined],
    ],
  )
})

const PART: RayPart = {
  ...{ ray_id: newId(0), service: 'api', operation: 'bootstrap', owner: null, player_id: null, code: null },
  ...{ ts_us: 0, duration_us: 5, spans: [['http', 0, 5]], marks: [] },
}

test('what is no address of a collector is refused, and its secret is not repeated', () => {
  assert.throws(() => readConfig({ MUSTER_OTLP_URL: 'collector:4318' }), /MUSTER_OTLP_URL/)
  const env = { MUSTER_OTLP_URL: 'http://collector:4318', MUSTER_OTLP_HEADERS: 'hunter2' }
  assert.throws(
    () => readConfig(env),
    (error: Error) => error.message.includes('MUSTER_OTLP_HEADERS') && !error.message.includes('hunter2'),
  )
})
