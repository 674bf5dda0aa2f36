import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'

/** As the runner starts a test file. */
function exitCodeOf(t: { after: (end: () => void) => void }, text: string): number | null {
  const folder = mkdtempSync(join(tmpdir(), 'muster-nobody-caught-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'some.test.mjs')
  writeFileSync(file, text)
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const loaded = pathToFileURL(join(import.meta.dirname, 'nobody-caught.ts')).href
  return spawnSync(process.execPath, ['--test', `--import=${loaded}`, file], { env }).status
}

test('a test file that cannot be imported fails, and so does one with an error that nobody catches', (t) => {
  const passing = "import { test } from 'node:test'\ntest('passes', () => {})\n"
  assert.equal(exitCodeOf(t, passing), 0)
  assert.equal(exitCodeOf(t, `import './no-such-file.mjs'\n${passing}`), 1)
  assert.equal(exitCodeOf(t, `${passing}setTimeout(() => { throw new Error('late') }, 50)`), 1)
  assert.equal(exitCodeOf(t, `${passing}void Promise.reject(new Error('rejected'))`), 1)
})
