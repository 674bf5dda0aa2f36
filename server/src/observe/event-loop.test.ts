import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createMetrics } from './metrics.ts'

const BLOCKED_MS = 400

test('the lag of the event loop is that of a blocked process, and nearly none of an idle one', async () => {
  const metrics = createMetrics({ roles: ['api'] })
  metrics.watchProcess()
  const read = async (statistic: string): Promise<number> => {
    const { text } = await metrics.text()
    return Number(new RegExp(`^nodejs_eventloop_lag_${statistic}_seconds (\\S+)`, 'm').exec(text)?.[1])
  }
  await delay(300)
  const idle_s = await read('p50')
  assert.ok(idle_s < 0.1, `${idle_s} s of lag while idle`)
  // The first sample after a scrape begins an interval, and ends none.
  await delay(250)
  const begin = performance.now()
  while (performance.now() - begin < BLOCKED_MS);
  await delay(150)
  const blocked_s = await read('max')
  assert.ok(blocked_s > (BLOCKED_MS - 100) / 1_000 - 0.05, `${blocked_s} s of lag while blocked`)
  await delay(250)
  assert.ok((await read('max')) < blocked_s, 'a scrape begins anew')
})
