// The fuzzing of the edge: streams of requests, and responses of hostile backends, in lanes that run at the same time. Each
// lane has one case under way, and backends of its own.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { startTestEdge, type TestEdge } from '../../edge/platform.ts'
import { until } from '../../support/until.ts'
import { type Campaign, examineAll, inLanes, literal } from '../campaign.ts'
import { startPeers } from './peers.ts'
import { openRequestLane } from './request-lane.ts'
import { type Stream, streams } from './requests.ts'
import { openResponseLane } from './response-lane.ts'
import { type Hostile, hostileResponses } from './responses.ts'

const LANES = 8
/** Of the streams, those that are responses. */
const RESPONSES_SHARE = 0.25

/** Differential fuzzing against Node's parser, nginx and HAProxy. Throws with a stream that breaks a law. */
export async function fuzzEdge(t: TestContext, campaign: Campaign): Promise<void> {
  const edge = await startTestEdge(t)
  const peers = await startPeers(t, LANES)
  const sum = { forwarded: 0, refused: 0, passed: 0 }
  await inLanes(LANES, campaign, async (lane, { count, seed }, stop) => {
    const requests = await openRequestLane(t, edge, peers[lane]!)
    const responses = await openResponseLane(t, edge)
    reportCrash(t, () => requests.stream ?? responses.hostile)
    const examineRequest = async (stream: Stream) => {
      const { forwarded, refused } = await requests.examine(stream)
      sum.forwarded += forwarded
      sum.refused += refused
    }
    const examineResponse = async (hostile: Hostile) => {
      if (await responses.examine(hostile)) sum.passed++
    }
    await examineAll(
      { cases: streams, examine: examineRequest, toTest: requestTest, stop },
      { count: Math.ceil(count * (1 - RESPONSES_SHARE)), seed },
    )
    await examineAll(
      { cases: hostileResponses, examine: examineResponse, toTest: responseTest, stop },
      { count: Math.ceil(count * RESPONSES_SHARE), seed },
    )
  })
  await requireNoneOpen(edge)
  t.diagnostic(`compared with ${peers[0]!.map(({ name }) => name).join(', ')}, seed ${campaign.seed}`)
  t.diagnostic(`requests: ${sum.forwarded} forwarded, ${sum.refused} refused; responses: ${sum.passed} passed on`)
  // A generator of which nothing passes, or of which everything does, would show nothing.
  assert.ok(sum.forwarded > 0 && sum.refused > 0 && sum.passed > 0)
}

/** One stream, for a test that keeps what was found. */
export async function examineRequests(t: TestContext, stream: Stream): Promise<void> {
  const edge = await startTestEdge(t)
  const [peers = []] = await startPeers(t, 1)
  await (await openRequestLane(t, edge, peers)).examine(stream)
}

/** One response of a backend, for a test that keeps what was found. */
export async function examineResponse(t: TestContext, hostile: Hostile): Promise<void> {
  await (await openResponseLane(t, await startTestEdge(t))).examine(hostile)
}

function requestTest({ bytes, pieces }: Stream): string {
  return `test('PROMISE', (t) =>\n  examineRequests(t, {\n    bytes: ${literal(bytes)},\n    pieces: ${literal(pieces)},\n  }))`
}

function responseTest(hostile: Hostile): string {
  const members = Object.entries(hostile).map(([name, value]) => `    ${name}: ${literal(value)},\n`)
  return `test('PROMISE', (t) =>\n  examineResponse(t, {\n${members.join('')}  }))`
}

/** All clients are gone, so no connection of a client may be left. */
async function requireNoneOpen({ ctx }: TestEdge): Promise<void> {
  await until('the edge has no connection of a client', async () =>
    /^muster_edge_connections\{kind="http"\} 0$/m.test((await ctx.metrics.text()).text),
  )
}

/** An uncaught error names no stream, so the streams under way are added to it. */
function reportCrash(t: TestContext, underWay: () => unknown): void {
  const report = () => console.error('under way:', literal(underWay()))
  process.on('uncaughtExceptionMonitor', report)
  t.after(() => process.off('uncaughtExceptionMonitor', report))
}
