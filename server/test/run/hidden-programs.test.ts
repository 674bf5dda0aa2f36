import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { whyNotHidden } from './hidden-programs.ts'
import { lacking } from './optional-programs.ts'
import { runFiles, writeFiles } from './run-files.ts'

test('--without-programs hides the optional programs from PATH and from absolute paths, and nothing else', async (t) => {
  const missing = lacking('git') ?? whyNotHidden(join(await writeFiles(t), 'layers'))
  if (missing !== null) return t.skip(missing)
  const looks = async (...flags: string[]) => {
    const { exit_code, output } = await runFiles(t, { names: ['looks.test.mjs'], flags })
    assert.equal(exit_code, 0, output)
    return /ℹ (.* uid \d+)/.exec(output)?.[1]
  }
  const uid = process.getuid?.()
  assert.equal(await looks('--without-programs'), `ENOENT ENOENT found uid ${uid}`)
  assert.equal(await looks(), `found found found uid ${uid}`)
})
