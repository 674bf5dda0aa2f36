import assert from 'node:assert'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { findImageProgram } from './find-image-program.ts'

test('a program of an image is found behind a file that is not executable, and such a file alone is named with the remedy', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'muster-image-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  for (const folder of ['bin', 'usr/bin']) mkdirSync(join(root, folder), { recursive: true })
  writeFileSync(join(root, 'bin/tool'), '#!/bin/sh\n', { mode: 0o644 })
  writeFileSync(join(root, 'usr/bin/tool'), '#!/bin/sh\n', { mode: 0o755 })
  const find = (search_path: string, name = 'tool') => findImageProgram(root, '/', search_path, name)
  assert.deepStrictEqual(find('/bin:/usr/bin'), { command: '/usr/bin/tool', file: join(root, 'usr/bin/tool') })
  const message = '"tool" exists in the image, but is not executable. Run chmod +x on it in the Dockerfile.'
  assert.deepStrictEqual(find('/bin:/sbin'), { refused: 'not_executable', message })
  assert.strictEqual((find('/bin', './bin/tool') as { refused: string }).refused, 'not_executable')
  assert.strictEqual((find('/sbin') as { refused: string }).refused, 'no_such_file')
})
