// The table of the programs that tests use, and the list of `.ci/run`, which must work before `npm ci`.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { lacking, OPTIONAL_PROGRAMS, packagesFor, wordsOf } from './optional-programs.ts'

const CI = join(import.meta.dirname, '../../../.ci/run')
/** Every Debian has them, so no test is skipped without them. */
const OF_EVERY_DEBIAN = ['need setpriv util-linux', 'need useradd passwd']

test('.ci/run installs the programs of the table, and no others', () => {
  const lines = readFileSync(CI, 'utf8').match(/^need(?:_module)? .+$/gm)
  const expected = Object.entries(OPTIONAL_PROGRAMS).map(([name, row]) => {
    if (row.module !== undefined) return `need_module ${row.module} ${row.package}`
    const [first = name] = row.names ?? []
    return `need ${first.includes('*') ? `'${first}'` : first} ${row.package}`
  })
  assert.deepEqual(lines?.toSorted(), [...OF_EVERY_DEBIAN, ...expected].sort())
})

test('a reason names each missing need once, and is taken apart again', (t) => {
  const path = process.env.PATH
  t.after(() => {
    process.env.PATH = path
  })
  process.env.PATH = '/nonexistent'
  const reason = lacking('bwrap', 'dockerd', 'docker', 'chromium')
  assert.equal(reason, 'needs bubblewrap, Docker, Chromium')
  assert.deepEqual(wordsOf(reason), ['bubblewrap', 'Docker', 'Chromium'])
  assert.deepEqual(wordsOf('the moon is full'), ['the moon is full'])
  assert.deepEqual(packagesFor(['Docker', 'bubblewrap', 'root']), ['bubblewrap', 'docker.io'])
  assert.equal(lacking(), null)
})

test('the words of a program are no list, so that a reason can be taken apart', () => {
  for (const { words } of Object.values(OPTIONAL_PROGRAMS)) assert.doesNotMatch(words, /,/)
})
