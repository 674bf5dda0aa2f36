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
  takeUnfinished,
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

test('a line is what a person sees: without colours, and of what overwrites itself the last state', () => {
  const seen: [string, string][] = [
    ['\u001b[1;31mred\u001b[0m and \u001b[38;2;1;2;3mblue\u001b[m', 'red and blue'],
    ['\u001b]0;title\u0007text \u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\', 'text link'],
    ['\u001b(B\u001b[?25lhidden cursor\u001b[?25h\u001b7\u001b8', 'hidden cursor'],
    ['10%\r50%\r100% done\r', '100% done'],
    ['50%\r\u001b[K', ''],
    ['50%\u001b[2K\u001b[1Gdone', 'done'],
    ['|\b/\b-\bä\bdone', 'done'],
    ['\u001b]unended title', 'unended title'],
    ['cut in a sequence \u001b[3', 'cut in a sequence '],
    ['tab\t, nul \0 and umlaut ä stay', 'tab\t, nul \0 and umlaut ä stay'],
  ]
  for (const [written, visible] of seen) {
    for (const size of [1, 100]) {
      const lines = createLines(T)
      const bytes = Buffer.from(`${written}\n`)
      let kept = ''
      for (let at = 0; at < bytes.length; at += size) kept += takeChunk(lines, bytes.subarray(at, at + size), T)
      assert.strictEqual(kept, `${STAMP}${visible}\n`, JSON.stringify(written))
    }
  }
})

test('a progress bar that overwrites its line for minutes is one line, and takes no more memory', () => {
  const lines = createLines(T)
  let kept = ''
  for (let step = 0; step < 20_000; step++) {
    kept += takeChunk(lines, Buffer.from(`\r\u001b[32mstep ${step}\u001b[0m`), T)
    assert.ok(lines.partial.length <= LINE_BYTES_MAX)
  }
  kept += takeChunk(lines, Buffer.from('\nnext\n'), T)
  assert.strictEqual(kept, `${STAMP}step 19999\n${STAMP}next\n`)
})

test('an unfinished line is kept once, and its end adds no empty line', () => {
  const lines = createLines(T)
  const take = (text: string) => String(takeChunk(lines, Buffer.from(text), T))
  assert.strictEqual(take('name: ') + takeUnfinished(lines, T), `${STAMP}name: \n`)
  assert.strictEqual(String(takeUnfinished(lines, T)), '')
  assert.strictEqual(take('\r\n\nnext\n'), `${STAMP}\n${STAMP}next\n`)
  assert.strictEqual(take('10%') + takeUnfinished(lines, T) + take('\r20%\n'), `${STAMP}10%\n${STAMP}20%\n`)
  assert.strictEqual(take('\u001b[?25l') + takeUnfinished(lines, T) + take('text\n'), `${STAMP}text\n`)
})
