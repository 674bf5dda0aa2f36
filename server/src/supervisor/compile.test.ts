import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createLog } from '../observe/log.ts'
import { compileOnce } from './compile.ts'

/** The platform has some hundred modules of its own. */
const COMPILED_MIN = 300

function folderOf(t: TestContext): string {
  const parent = mkdtempSync(join(tmpdir(), 'muster-compiled-'))
  t.after(() => rmSync(parent, { recursive: true, force: true }))
  return join(parent, 'compiled')
}

const log = createLog({ who: 'test', level: 'silent' })

test('the first start compiles the modules of all roles', async (t) => {
  const folder = folderOf(t)
  await compileOnce({ NODE_COMPILE_CACHE: folder }, { signal: new AbortController().signal, log })
  const count = readdirSync(folder, { recursive: true }).length
  assert.ok(count > COMPILED_MIN, `${count} modules`)
})

test('a later start compiles nothing', async (t) => {
  const folder = folderOf(t)
  mkdirSync(folder)
  await compileOnce({ NODE_COMPILE_CACHE: folder }, { signal: new AbortController().signal, log })
  assert.deepEqual(readdirSync(folder), [])
})

test('an interrupted start does not wait for the modules to be compiled', async (t) => {
  const folder = folderOf(t)
  const stop = new AbortController()
  const compiled = compileOnce({ NODE_COMPILE_CACHE: folder }, { signal: stop.signal, log })
  stop.abort()
  await compiled
  assert.ok(!existsSync(folder) || readdirSync(folder, { recursive: true }).length < COMPILED_MIN)
})
