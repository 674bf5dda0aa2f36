import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CheckWatch, GIVE_UP_MS } from './check-watch.ts'

const REPORT = { lobby_id: 'one', is_ready: false, is_started: true, is_listening: false, message: '', log_lines: [] }

test('a check is given up 30 s after the start of a server that is silent', () => {
  const watch = new CheckWatch(false)
  assert.equal(watch.read({ ...REPORT, is_started: false }, 0).is_over, false)
  assert.equal(watch.read({ ...REPORT, is_started: false }, 10 * GIVE_UP_MS).is_over, false, 'an image is pulled')
  const start_ms = 11 * GIVE_UP_MS
  assert.equal(watch.read(REPORT, start_ms).is_over, false)
  assert.equal(watch.read(REPORT, start_ms + GIVE_UP_MS - 1).is_over, false)
  assert.equal(watch.read(REPORT, start_ms + GIVE_UP_MS).is_over, true)
})

test('a server that writes and does not listen yet still loads; one that listens does not', () => {
  const watch = new CheckWatch(false)
  const logs = ['loading 1', '[muster] The server is not ready: it does not listen.', 'loading 2']
  assert.deepEqual(watch.read({ ...REPORT, log_lines: logs.slice(0, 1) }, 0).new_lines, ['loading 1'])
  const later = watch.read({ ...REPORT, log_lines: logs }, GIVE_UP_MS)
  assert.deepEqual(later, { new_lines: ['loading 2'], is_over: false })
  assert.equal(watch.read({ ...REPORT, log_lines: logs }, GIVE_UP_MS + 1).is_over, false)
  const listening = { ...REPORT, is_listening: true, log_lines: [...logs, 'listening'] }
  assert.equal(watch.read(listening, 2 * GIVE_UP_MS).is_over, true)
})

test('a version with a deadline of its own is waited for', () => {
  const watch = new CheckWatch(true)
  assert.equal(watch.read(REPORT, 0).is_over, false)
  assert.equal(watch.read(REPORT, 100 * GIVE_UP_MS).is_over, false)
})
