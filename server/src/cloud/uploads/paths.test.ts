import assert from 'node:assert/strict'
import test from 'node:test'
import { checkPaths, mistakeOf } from './paths.ts'

const pathOf = (index: number): string[] => ['files', String(index), 'path']

test('paths that mean the same everywhere are taken', () => {
  for (const path of [
    'index.html',
    'a/b/c.js',
    '.well-known/x',
    'é.txt',
    '名前/世界.png',
    'a b',
    '%2e%2e/x',
    'x..y',
    '...',
    'CON',
    '👩‍👩‍👧.svg',
    'x'.repeat(1024),
  ]) {
    assert.equal(mistakeOf(path), null, JSON.stringify(path.slice(0, 40)))
  }
})

test('paths that could mean something else are refused, with the reason', () => {
  const refused: Record<string, string[]> = {
    too_short: [''],
    too_long: ['x'.repeat(1025), 'é'.repeat(513), 'x'.repeat(4096)],
    absolute: ['/etc/passwd', '/', 'C:/x', 'c:x'],
    segment: ['../x', 'a/../b', '..', '.', './a', 'a/./b', 'a//b', 'a/'],
    backslash: ['..\\x', 'C:\\x', 'a\\b'],
    control_character: ['a\0b', 'a\nb', 'a\rb', 'a\u007f', 'a\u202eb', 'a\u2028b'],
    not_normalized: ['e\u0301.txt', '\u212b'],
  }
  for (const [reason, paths] of Object.entries(refused)) {
    for (const path of paths) assert.equal(mistakeOf(path)?.reason, reason, JSON.stringify(path.slice(0, 40)))
  }
})

test('two files of one name, or of names that differ only in case, are refused at the second', () => {
  for (const twins of [
    ['a.js', 'b.js', 'a.js'],
    ['a.js', 'b.js', 'A.JS'],
    ['Straße', 'b', 'STRASSE'],
    ['ÅNGSTRÖM', 'b', 'ångström'],
  ]) {
    const errors = checkPaths(twins, pathOf)
    assert.deepEqual(
      errors.map(({ path, reason }) => ({ path, reason })),
      [{ path: ['files', '2', 'path'], reason: 'not_unique' }],
    )
  }
})

test('ten thousand bad paths give a short answer, and ten thousand good ones a quick one', () => {
  assert.equal(
    checkPaths(
      Array.from({ length: 10_000 }, (_, index) => `../${index}`),
      pathOf,
    ).length,
    32,
  )
  assert.deepEqual(
    checkPaths(
      Array.from({ length: 10_000 }, (_, index) => `folder/${index}.js`),
      pathOf,
    ),
    [],
  )
})
