import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findLobby, getRayPerfLogs } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { ask, JSON_TYPE } from '../http/ask.ts'
import { until } from '../support/until.ts'
import { startArena } from './arena.ts'

test('a find that started a lobby reports where its time went in every process, and that adds up', async (t) => {
  const arena = await startArena(t, { deploy: [] })
  const url = `http://localhost:${arena.settings.MUSTER_EDGE_HTTP_PORT}`
  const answer = await ask(`${url}${findLobby.path}`, {
    method: 'POST',
    headers: { ...JSON_TYPE, origin: new URL(arena.play_url).origin },
    body: JSON.stringify({ game_modes: ['default'] }),
  })
  assert.equal(answer.status, 200, answer.text)
  const admin = createClient({ url, token: readFileSync(join(arena.folder, 'admin-token'), 'utf8').trim() })
  const params = { ray_id: String(answer.headers['x-ray-id']) }
  let perf_lists: Awaited<ReturnType<typeof admin.call<typeof getRayPerfLogs>>>['perf_lists'] = []
  await until('all parts of the ray', async () => {
    perf_lists = (await admin.call(getRayPerfLogs, { params }).catch(() => ({ perf_lists: [] }))).perf_lists
    return perf_lists.length === 3
  })
  const labels = new Map(perf_lists.map(({ svc_name, spans }) => [svc_name, spans.map(({ label }) => label)]))
  assert.deepEqual(labels.get('edge'), ['http', 'forward', 'answer'])
  const seat = ['http', 'auth', 'http', 'handle', 'choose', 'commit', 'start', 'wait', 'answer']
  assert.deepEqual(labels.get('matchmaker'), seat)
  assert.deepEqual(labels.get('runner'), ['row', 'process', 'listen', 'ready'])
  const microseconds = (ts: string): number => Date.parse(`${ts.slice(0, 23)}Z`) * 1_000 + Number(ts.slice(23, 26))
  for (const { svc_name, duration, spans } of perf_lists) {
    const sum = spans.reduce((us, span) => us + microseconds(span.finish_ts!) - microseconds(span.start_ts), 0)
    assert.ok(Math.abs(sum - duration) <= duration * 0.05, `${svc_name}: ${sum} of ${duration}`)
    t.diagnostic(`${svc_name} ${duration} us: ${spans.map(({ label }) => label).join(' ')}`)
  }
})
