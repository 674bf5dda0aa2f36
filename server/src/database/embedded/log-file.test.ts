import assert from 'node:assert/strict'
import { closeSync, ftruncateSync, openSync, statSync, writeSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import pino from 'pino'
import { openLogFile } from './log-file.ts'

const silent = pino({ level: 'silent' })

test('a log that has grown too large is put aside once, and its tail has only new lines', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-log-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'postgres.log')
  const old = openSync(path, 'w')
  ftruncateSync(old, 11 * 1024 * 1024)
  closeSync(old)

  const file = await openLogFile(path, silent)
  assert.equal(statSync(path).size, 0)
  assert.equal(statSync(`${path}.1`).size, 11 * 1024 * 1024)
  assert.equal(await file.tail(), '')
  writeSync(file.descriptor, `${'x'.repeat(5_000)}the end\n`)
  const tail = await file.tail()
  assert(tail.length <= 4_096 && tail.endsWith('the end\n'))
  file.close()

  const again = await openLogFile(path, silent)
  assert.equal(await again.tail(), '')
  again.close()
})
