import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { directoryNamed, directoryOf } from './keys.ts'

test('the directory of a key is the part before its last unescaped slash', () => {
  const directories: Record<string, string> = {
    '': '',
    score: '',
    'players/ada': 'players',
    'players/ada/': 'players/ada',
    '/': '',
    '//': '/',
    'a/b\\/c': 'a',
    'a\\/b': '',
    'a\\\\/b': 'a\\\\',
  }
  for (const [key, directory] of Object.entries(directories)) assert.equal(directoryOf(key), directory, key)
})

test('a directory may be named with or without its last slash, and contains its keys', () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'é', '\\', '/', '.'), maxLength: 12 })
  fc.assert(
    fc.property(name, fc.constantFrom('x', 'ada', 'a\\/b'), (directory, file) => {
      const named = directoryNamed(directory)
      // A backslash at the end of the name would escape the slash after it.
      fc.pre(!/(?<!\\)(\\\\)*\\$/.test(named))
      assert.equal(directoryOf(`${named}/${file}`), named)
      assert.equal(directoryNamed(`${named}/`), named)
    }),
  )
})
