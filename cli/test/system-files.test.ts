// A deploy from Windows: the paths of Windows, files without executable bits, and lists with its line ends.
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, posix, win32 } from 'node:path'
import { type TestContext, test } from 'node:test'
import { listFiles } from '../src/deploy/files.ts'
import { readIgnoreRules } from '../src/deploy/ignore-rules.ts'
import { isInside } from '../src/deploy/system-files.ts'

const FILES_MAX = 100

test('a link that leaves the folder is seen by the rules of Windows: drives, long paths, shares and case', () => {
  const long = 'a'.repeat(300)
  for (const [folder, target, expected] of [
    ['C:\\games\\dots', 'C:\\games\\dots\\server\\main.js', true],
    ['C:\\games\\dots', 'c:\\Games\\DOTS\\server\\main.js', true],
    ['C:\\games\\dots', 'C:\\games\\dots\\..name', true],
    ['C:\\games\\dots', 'C:\\games\\other.js', false],
    ['C:\\games\\dots', 'C:\\games', false],
    ['C:\\games\\dots', 'D:\\games\\dots\\main.js', false],
    [`\\\\?\\C:\\${long}`, `\\\\?\\C:\\${long}\\main.js`, true],
    [`\\\\?\\C:\\${long}`, '\\\\?\\C:\\other\\main.js', false],
    ['\\\\desk\\share\\dots', '\\\\desk\\share\\dots\\main.js', true],
    ['\\\\desk\\share\\dots', 'C:\\dots\\main.js', false],
  ] as const) {
    assert.equal(isInside(folder, target, win32), expected, `${folder} ${target}`)
  }
  assert.equal(isInside('/games/dots', '/games/dots/..name', posix), true)
  assert.equal(isInside('/games/dots', '/games/dots-2/main.js', posix), false)
})

test('without executable bits, scripts and programs of Linux are executable, and other files are not', async (t) => {
  const folder = folderOf(t, {
    'bin/start': '#!/bin/sh\necho\n',
    'bin/server': '\u007fELF\u0002\u0001',
    'bin/empty': '',
    'bin/short': '#',
    'main.js': 'console.log(1)\n',
  })
  chmodSync(join(folder, 'main.js'), 0o755)
  const rules = readIgnoreRules(folder, [])
  const names = async (has_marks: boolean): Promise<string[]> => {
    const files = await listFiles(folder, rules, FILES_MAX, has_marks)
    return files.filter(({ is_executable }) => is_executable).map(({ path }) => path)
  }
  assert.deepEqual(await names(false), ['bin/server', 'bin/start'])
  assert.deepEqual(await names(true), ['main.js'], 'elsewhere the bits decide')
})

test('a list of ignored files with the line ends of Windows leaves out the same files', async (t) => {
  const files = { 'notes.txt': 'a', 'art/big.psd': 'b', 'art/kept.psd': 'c', 'main.js': 'd' }
  const lines = ['# art', '*.txt', 'art/*.psd', '!art/kept.psd', '']
  for (const end of ['\n', '\r\n']) {
    const folder = folderOf(t, { ...files, '.musterignore': lines.join(end) })
    const found = await listFiles(folder, readIgnoreRules(folder, []), FILES_MAX)
    assert.deepEqual(
      found.map(({ path }) => path),
      ['art/kept.psd', 'main.js'],
    )
  }
})

function folderOf(t: TestContext, files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-files-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text, 'latin1')
  }
  return folder
}
