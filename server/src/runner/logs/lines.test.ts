import assert from 'node:assert'
import { test } from 'node:test'
import {
  createLines,
  KEPT_BYTES_BURST_MAX,
  KEPT_BYTES_PER_SECOND_MAX,
  LINE_BYTES_MAX,
  takeChunk,
  takeEnd,
  takePause,
} from './lines.ts'

const T = Date.parse('2026-01-02T03:04:05.678Z')
const STAMP = '2026-01-02T03:04:05.678Z '

test('a line is kept whole, however its bytes arrive', () => {
  const text = 'first\nsecond ä\r\n\nlast'
  for (const size of [1, 2, 3, 100]) {
    const lines = createLines(T)
    let kept = ''
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at += size) kept += takeChunk(lines, bytes.subarray(at, at + size), T)
    kept += takeEnd(lines, T)
    assert.strictEqual(kept, `${STAMP}first\n${STAMP}second ä\n${STAMP}\n${STAMP}last\n`)
  }
})

test('an endless line is cut at its limit, in memory too, and the next one is whole', () => {
  const lines = createLines(T)
  const chunk = Buffer.alloc(50_000, 'a')
  let kept = ''
  for (let n = 0; n < 100; n++) {
    kept += takeChunk(lines, chunk, T)
    assert.ok(lines.partial.length <= LINE_BYTES_MAX)
  }
  kept += takeChunk(lines, Buffer.from('aaa\nnext\n'), T)
  assert.strictEqual(kept, `${STAMP}${'a'.repeat(LINE_BYTES_MAX)} [line cut]\n${STAMP}next\n`)
})

test('a flood is kept up to the burst and then up to the rate, and dropped lines are counted exactly', () => {
  const lines = createLines(T)
  const line = `${'x'.repeat(99)}\n`
  const chunk = Buffer.from(line.repeat(1_000))
  let kept = ''
  let written = 0
  for (let n = 0; n < 100; n++) {
    kept += takeChunk(lines, chunk, T)
    written += 1_000
  }
  assert.ok(kept.length <= KEPT_BYTES_BURST_MAX)
  assert.ok(kept.length > KEPT_BYTES_BURST_MAX - 1_000)
  let later = ''
  for (let second = 1; second <= 10; second++) {
    later += takeChunk(lines, chunk, T + second * 1_000)
    written += 1_000
  }
  later += takePause(lines, T + 11_000)
  assert.ok(later.length < 11 * KEPT_BYTES_PER_SECOND_MAX)
  const all = (kept + later).split('\n').slice(0, -1)
  const whole = all.filter((text) => text.endsWith(line.trimEnd())).length
  const dropped = all.map((text) => /\[muster\] (\d+) lines dropped/.exec(text)?.[1] ?? 0)
  assert.strictEqual(whole + dropped.reduce<number>((sum, count) => sum + Number(count), 0), written)
  assert.ok(whole < written)
})

test('a clock that is set back neither adds allowance nor removes it', () => {
  const lines = createLines(T)
  takeChunk(lines, Buffer.from('a\n'), T - 60_000)
  assert.ok(lines.allowance_bytes <= KEPT_BYTES_BURST_MAX)
  assert.match(takeChunk(lines, Buffer.from('b\n'), T).toString(), /b\n$/)
})
