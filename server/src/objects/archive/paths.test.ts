import assert from 'node:assert'
import { resolve, win32 } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { ARCHIVE_LIMITS } from './archive.ts'
import { createPathTree, pathFault, twinKey } from './paths.ts'

const refused = (reason: string) => (error: { code?: string; metadata?: { reason?: string } }) => {
  assert.deepStrictEqual([error.code, error.metadata?.reason], ['ARCHIVE_INVALID', reason])
  return true
}

/** Names of attacks, and parts to build others from. */
const PIECES = [
  '..',
  '.',
  '/',
  '\\',
  ':',
  'C:',
  '\0',
  '%2e',
  'a',
  'A',
  'é',
  'e\u0301',
  ' ',
  '\u202e',
  'nul',
  '~',
  '\ud800',
]
const hostile = fc.oneof(
  fc.array(fc.constantFrom(...PIECES), { maxLength: 12 }).map((pieces) => pieces.join('')),
  fc.string({ unit: 'binary', maxLength: 40 }),
)

test('an accepted path stays below its folder, on POSIX and on Windows, literal or decoded', () => {
  let accepted = 0
  fc.assert(
    fc.property(hostile, (path) => {
      if (pathFault(path, ARCHIVE_LIMITS) !== null) return
      accepted += 1
      for (const reading of [path, decodeLeniently(path)]) {
        assert.strictEqual(resolve('/target', reading), `/target/${reading}`)
        const windows = win32.resolve('D:\\target', reading)
        assert.strictEqual(windows, `D:\\target\\${reading.replaceAll('/', '\\')}`)
      }
      assert.ok(path.isWellFormed())
    }),
    { numRuns: 20_000 },
  )
  assert.ok(accepted > 500, `Only ${accepted} paths were accepted: this has shown little.`)
})

function decodeLeniently(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

test('ordinary paths are accepted', () => {
  const word = fc.stringMatching(/^[a-zA-Z0-9_@+-]{1,20}(\.[a-z]{1,4})?$/)
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 10 }), (names) => {
      fc.pre(!names.some((name) => /^(con|prn|aux|nul|(com|lpt)\d)(\.|$)/i.test(name)))
      assert.strictEqual(pathFault(names.join('/'), ARCHIVE_LIMITS), null)
    }),
  )
  for (const path of [
    '.env',
    '[...slug].js',
    'größe/日本語.txt',
    'a~b',
    "it's (1).png",
    '100%.txt',
    'console.js',
    'a.b.c',
  ]) {
    assert.strictEqual(pathFault(path, ARCHIVE_LIMITS), null, path)
  }
})

test('no two accepted paths are one file on a file system that ignores case or accents', () => {
  const letter = fc.constantFrom(...'aAbBéÉßẞKkİıſs', '\u0301', '\u212a')
  const name = fc.array(letter, { minLength: 1, maxLength: 4 }).map((letters) => letters.join(''))
  fc.assert(
    fc.property(fc.array(fc.array(name, { minLength: 1, maxLength: 3 }), { maxLength: 20 }), (paths) => {
      const tree = createPathTree(ARCHIVE_LIMITS)
      const made = new Map<string, string>()
      for (const names of paths) {
        let place: ReturnType<typeof tree.add> | undefined
        try {
          place = tree.add(names.join('/'), 'file')
        } catch (error) {
          assert.strictEqual((error as { code?: string }).code, 'ARCHIVE_INVALID')
        }
        for (const path of place ? [...place.new_directories, place.path] : []) {
          for (const folded of [path.toLowerCase(), path.toUpperCase(), path.normalize('NFC'), path.normalize('NFD')]) {
            assert.ok((made.get(folded) ?? path) === path, `${made.get(folded)} and ${path}`)
            made.set(folded, path)
          }
        }
      }
    }),
    { numRuns: 2000 },
  )
})

test('the forms of every character that Unicode has fold to one', () => {
  const CODE_POINTS = 0x110000
  for (let point = 0; point < CODE_POINTS; point++) {
    const letter = String.fromCodePoint(point)
    const forms = [letter.toUpperCase(), letter.toLowerCase(), letter.normalize('NFC'), letter.normalize('NFD')]
    const key = twinKey(letter)
    for (const form of [...forms, key]) {
      if (twinKey(form) !== key) assert.fail(`U+${point.toString(16)} and ${JSON.stringify(form)}`)
    }
  }
})

test('parents come before their content, each once, and implied folders count', () => {
  const tree = createPathTree(ARCHIVE_LIMITS)
  assert.deepStrictEqual(tree.add('./', 'directory'), null)
  assert.deepStrictEqual(tree.add('./a/b/c.txt', 'file'), { path: 'a/b/c.txt', new_directories: ['a', 'a/b'] })
  assert.deepStrictEqual(tree.add('a/b/', 'directory'), { path: 'a/b', new_directories: [] })
  assert.deepStrictEqual(tree.add('a/d', 'directory'), { path: 'a/d', new_directories: ['a/d'] })
  assert.strictEqual(tree.count(), 4)
  assert.throws(() => tree.add('a/b', 'directory'), refused('duplicate'))
  assert.throws(() => tree.add('.', 'directory'), refused('duplicate'))
  assert.throws(() => tree.add('a/b', 'file'), refused('duplicate'))
  assert.throws(() => tree.add('a/b/c.txt/d', 'file'), refused('not_a_folder'))
  assert.throws(() => tree.add('a/B/e', 'file'), refused('twin'))
  assert.throws(() => tree.add('.', 'file'), refused('dots'))
  assert.throws(() => tree.add('', 'directory'), refused('empty_name'))
  assert.throws(() => tree.add('/', 'directory'), refused('empty_name'))
  assert.throws(() => tree.add('././x', 'file'), refused('dots'))
  assert.throws(() => tree.add('x/', 'file'), refused('empty_name'))
})

test('the limits hold at exactly their number', () => {
  const limits = { entries_max: 3, path_bytes_max: 10, depth_max: 2 }
  assert.strictEqual(pathFault('aaaaaaaaaa', limits), null)
  assert.strictEqual(pathFault('aaaaaaaaaaa', limits), 'path_too_long')
  assert.strictEqual(pathFault('éééééa', limits), 'path_too_long')
  assert.strictEqual(pathFault('a/b', limits), null)
  assert.strictEqual(pathFault('a/b/c', limits), 'path_too_deep')
  assert.strictEqual(pathFault('a'.repeat(255), ARCHIVE_LIMITS), null)
  assert.strictEqual(pathFault('a'.repeat(256), ARCHIVE_LIMITS), 'path_too_long')
  const tree = createPathTree(limits)
  tree.add('a/b', 'file')
  tree.add('c', 'file')
  assert.throws(() => tree.add('d', 'file'), refused('too_many_entries'))
})
