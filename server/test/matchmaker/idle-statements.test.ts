// An idle matchmaker is paid for on every node, so what it asks the database is bounded.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { evenShares, startNodes } from './nodes.ts'

const SECONDS = 5
/** Heartbeats and revoked tokens twice; edges and nodes, and what lobbies of other shards use, once; the rest seldom. */
const STATEMENTS_PER_S_MAX = 8
/** What begins or ends within the time, such as a sweep. */
const OTHERS_MAX = 5

test('an idle matchmaker beside another one sends at most 8 statements a second', async (t) => {
  const nodes = await startNodes(t)
  const second = await nodes.join()
  await evenShares([nodes.first, second])
  // What it does once after its start.
  await delay(2_000)
  let count = 0
  second.ctx.pool.on('acquire', () => count++)
  await delay(SECONDS * 1_000)
  assert.ok(count > SECONDS, `it is alive: ${count} statements`)
  assert.ok(count <= SECONDS * STATEMENTS_PER_S_MAX + OTHERS_MAX, `${count} statements in ${SECONDS} s`)
})
