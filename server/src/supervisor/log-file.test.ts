import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { LOG_LINE_BYTES_MAX, openLogFile, splitLines } from './log-file.ts'

test('a log file stays within its size, and the lines before its last rotation are in the older file', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'muster-log-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = openLogFile(folder, 'api', { bytes_max: 100 })
  t.after(() => file.close())
  for (let line = 0; line < 50; line++) assert.equal(file.write(`line ${String(line).padStart(2, '0')}`), true)
  const newest = readFileSync(file.path, 'utf8')
  const older = readFileSync(`${file.path}.1`, 'utf8')
  assert.ok(statSync(file.path).size <= 108 && statSync(`${file.path}.1`).size <= 108)
  assert.ok(newest.endsWith('line 49\n'))
  const lines = `${older}${newest}`.trim().split('\n')
  assert.deepEqual(
    lines,
    Array.from({ length: lines.length }, (_, index) => `line ${50 - lines.length + index}`),
  )
})

test('a new process appends to the log file of the last one', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'muster-log-'))
  t.after(() => rmSync(folder, { recursive: true }))
  for (const word of ['one', 'two']) {
    const file = openLogFile(folder, 'api')
    file.write(word)
    file.close()
  }
  assert.equal(readFileSync(join(folder, 'api.log'), 'utf8'), 'one\ntwo\n')
})

test('lines are whole whatever the chunks, a long one is cut, and the last needs no newline', async () => {
  const stream = new PassThrough()
  const lines: string[] = []
  splitLines(stream, (line) => lines.push(line))
  stream.write('on')
  stream.write('e\ntwo\n')
  for (let piece = 0; piece < 64; piece++) stream.write('x'.repeat(1024))
  stream.write('\nthree')
  stream.end()
  for await (const _ of stream) assert.fail('splitLines reads everything')
  assert.deepEqual(lines, ['one', 'two', 'x'.repeat(LOG_LINE_BYTES_MAX), 'three'])
})
