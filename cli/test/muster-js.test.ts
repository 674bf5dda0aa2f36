// The file that a person starts as `muster` in a checkout: which program it runs.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

const CLI = join(import.meta.dirname, '..')
const ROOT = join(CLI, '..')
/** More than a step of the clock of a file system. */
const STEP_MS = 20
const FILES = {
  'cli/src/main.ts': "console.log('the source', process.argv[2])\n",
  'cli/src/deploy/deploy.ts': '\n',
  'contract/src/main.ts': '\n',
  'protocols/src/index.ts': '\n',
  'server/src/main.ts': '\n',
  'examples/arena/deploy.ts': '\n',
  'scripts/package/packages.ts': '\n',
  'cli/package.json': '{ "type": "module" }',
  'contract/package.json': '{}',
  'protocols/package.json': '{}',
  'server/package.json': '{}',
  'package-lock.json': '{}',
}
const BUILT = {
  'dist/programs/package.json': '{ "type": "module" }',
  'dist/programs/muster.js': "console.log('the built program', process.argv[2])\n",
  'dist/programs/built-from.txt': 'a hash',
}

test('a command runs the built program until a source is written, moved or removed', async (t) => {
  const root = checkoutOf(t)
  const typed = async (): Promise<string> => {
    const { stdout } = await promisify(execFile)(process.execPath, [join(root, 'cli/muster.js'), 'games'])
    return stdout.trim()
  }
  assert.equal(await typed(), 'the source games', 'nothing is built')
  const changes: Record<string, () => void> = {
    'a line is added': () => writeFileSync(join(root, 'cli/src/deploy/deploy.ts'), '// changed\n'),
    'a file is added': () => writeFileSync(join(root, 'server/src/more.ts'), '\n'),
    'a file is removed': () => rmSync(join(root, 'server/src/more.ts')),
    'other libraries': () => writeFileSync(join(root, 'package-lock.json'), '{"packages":{}}'),
    'an older copy of a file': () => {
      writeFileSync(join(root, 'contract/src/main.ts'), '// older\n')
      utimesSync(join(root, 'contract/src/main.ts'), 0, 0)
    },
  }
  for (const [what, change] of Object.entries(changes)) {
    await delay(STEP_MS)
    write(root, BUILT)
    assert.equal(await typed(), 'the built program games', `before: ${what}`)
    await delay(STEP_MS)
    change()
    assert.equal(await typed(), 'the source games', what)
  }
})

test('every file that the build reads is one whose change is seen', () => {
  const read = listIn('scripts/build.ts').flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
  const seen = listIn('cli/muster.js')
  assert.ok(read.length > 1_000 && seen.length > 5, `${read.length} ${seen.length}`)
  const unseen = read.filter((path) => !seen.some((one) => path === one || path.startsWith(`${one}/`)))
  assert.deepEqual(unseen, [])
})

/** The texts of the list SOURCES in a file. */
function listIn(file: string): string[] {
  const [, list = ''] = /const SOURCES = \[([\s\S]*?)\n\]/.exec(readFileSync(join(ROOT, file), 'utf8')) ?? []
  return [...list.matchAll(/'([^']+)'/g)].map(([, path = '']) => path)
}

function checkoutOf(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), 'muster-js-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  write(root, FILES)
  copyFileSync(join(CLI, 'muster.js'), join(root, 'cli/muster.js'))
  mkdirSync(join(root, 'node_modules/.bin'), { recursive: true })
  symlinkSync(process.execPath, join(root, 'node_modules/.bin/node'))
  return root
}

function write(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}
