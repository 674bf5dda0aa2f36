import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { LOG_FILES_MAX, logFile, newestFile } from './files.ts'
import { LOG_START, lastLines, linesAfter } from './read.ts'

const STAMP = '2026-01-02T03:04:05.678Z'

test('who reads on from place to place has every line once, or hears that some are gone', async () => {
  const step = fc.oneof(
    fc.record({ write: fc.integer({ min: 1, max: 40 }) }),
    fc.constant({ turn: true as const }),
    fc.record({ read: fc.integer({ min: 1, max: 50 }) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const folder = mkdtempSync(join(tmpdir(), 'muster-logs-'))
      try {
        let [written, file, place] = [0, 1, LOG_START]
        let expected = 0
        for (const one of steps) {
          if ('write' in one) {
            for (let count = 0; count < one.write; count++) {
              appendFileSync(logFile(folder, 'stdout', file), `${STAMP} ${written++}\n`)
            }
          } else if ('turn' in one) {
            // As the logger does: the next file appears with its first line.
            if (newestFile(folder, 'stdout') !== file || written === 0) continue
            file++
            rmSync(logFile(folder, 'stdout', file - LOG_FILES_MAX), { force: true })
            appendFileSync(logFile(folder, 'stdout', file), `${STAMP} ${written++}\n`)
          } else {
            const part = await linesAfter(folder, 'stdout', place, one.read)
            const numbers = part.lines.map(({ bytes }) => Number(bytes.toString()))
            assert.ok(numbers.length <= one.read)
            if (!part.is_gap && numbers.length > 0) assert.equal(numbers[0], expected)
            numbers.forEach((number, index) => {
              assert.equal(number, numbers[0]! + index)
            })
            if (numbers.length === 0) assert.equal(expected, written)
            else expected = numbers.at(-1)! + 1
            place = part.end
          }
        }
        const { lines, end } = await lastLines(folder, 'stdout', 10)
        assert.equal(lines.at(-1)?.bytes.toString(), written === 0 ? undefined : String(written - 1))
        assert.deepEqual((await linesAfter(folder, 'stdout', end, 10)).lines, [])
      } finally {
        rmSync(folder, { recursive: true })
      }
    }),
    { numRuns: 200 },
  )
})

test('a line that is being written is returned when it is whole', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'muster-logs-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = logFile(folder, 'stderr', 1)
  appendFileSync(path, `${STAMP} one\n${STAMP} tw`)
  const first = await linesAfter(folder, 'stderr', LOG_START, 10)
  assert.deepEqual(
    first.lines.map(({ bytes }) => bytes.toString()),
    ['one'],
  )
  assert.deepEqual((await linesAfter(folder, 'stderr', first.end, 10)).lines, [])
  appendFileSync(path, 'o\n')
  const second = await linesAfter(folder, 'stderr', first.end, 10)
  assert.deepEqual(
    second.lines.map(({ bytes }) => bytes.toString()),
    ['two'],
  )
})
