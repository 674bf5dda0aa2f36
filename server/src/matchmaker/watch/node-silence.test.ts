import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AWAY_MS, NodeSilence } from './node-silence.ts'

const GRACE_MS = 60_000
const report = (node_id: string, report_seq: number, is_fresh = true) => ({ node_id, report_seq, is_fresh })

/** Reads once a second from `from_ms` on, until `until_ms`; nothing new is reported. */
function readOn(silence: NodeSilence, reports: ReturnType<typeof report>[], from_ms: number, until_ms: number): void {
  for (let now_ms = from_ms; now_ms <= until_ms; now_ms += 1_000) silence.read(reports, [], now_ms)
}

test('a node is away after a few silent seconds, and lost after its grace', () => {
  const silence = new NodeSilence(GRACE_MS)
  const reports = [report('one', 1)]
  readOn(silence, reports, 0, AWAY_MS - 1_000)
  assert.equal(silence.isAway('one'), false)
  readOn(silence, reports, AWAY_MS, GRACE_MS - 1_000)
  assert.deepEqual([silence.isAway('one'), silence.isLost('one')], [true, false])
  readOn(silence, reports, GRACE_MS, GRACE_MS)
  assert.equal(silence.isLost('one'), true)
  silence.read([report('one', 2)], [], GRACE_MS + 1_000)
  assert.deepEqual([silence.isAway('one'), silence.isLost('one')], [false, false])
})

test('a reader that was cut off gives every node the full grace again', () => {
  const silence = new NodeSilence(GRACE_MS)
  const reports = [report('one', 1)]
  readOn(silence, reports, 0, GRACE_MS - 1_000)
  silence.read(reports, [], 10 * GRACE_MS)
  assert.deepEqual([silence.isAway('one'), silence.isLost('one')], [true, false])
  readOn(silence, reports, 10 * GRACE_MS + 1_000, 11 * GRACE_MS - 1_000)
  assert.equal(silence.isLost('one'), false)
  readOn(silence, reports, 11 * GRACE_MS, 11 * GRACE_MS)
  assert.equal(silence.isLost('one'), true)
})

test('a node with lobbies and without a report is away from the first read, and lost after the grace', () => {
  const silence = new NodeSilence(GRACE_MS)
  for (let now_ms = 0; now_ms < GRACE_MS; now_ms += 1_000) silence.read([report('old', 7, false)], ['gone'], now_ms)
  assert.deepEqual([silence.isAway('gone'), silence.isLost('gone')], [true, false])
  assert.deepEqual([silence.isAway('old'), silence.isLost('old')], [true, false])
  silence.read([report('old', 7, false)], ['gone'], GRACE_MS)
  assert.deepEqual([silence.isLost('gone'), silence.isLost('old')], [true, true])
})
