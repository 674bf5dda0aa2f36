// Runs in a process of its own: what ran before would change the processor time that it measures.
import assert from 'node:assert'
import { test } from 'node:test'
import { createGlob } from '@musterhost/contract/site'
import { cpuMsOf } from '../../../test/support/cpu-time.ts'

test('a glob matches whole paths', () => {
  const cases: Record<string, { yes: string[]; no: string[] }> = {
    '**': { yes: ['', 'a', 'a/b/c.js'], no: [] },
    '*': { yes: ['a', 'a.js'], no: ['a/b'] },
    '*.js': { yes: ['a.js', '.js', 'a.min.js'], no: ['a/b.js', 'a.jsx', 'js'] },
    '**/*.wasm': { yes: ['a.wasm', 'x/a.wasm', 'x/y/a.wasm'], no: ['a.wasm.br', 'x/a.js'] },
    'Build/**': { yes: ['Build/a', 'Build/a/b'], no: ['Build', 'build/a', 'xBuild/a'] },
    'a/**/b': { yes: ['a/b', 'a/x/b', 'a/x/y/b'], no: ['ab', 'a/xb', 'a/x/yb', 'a/b/c'] },
    'a**b': { yes: ['ab', 'a/b', 'axb', 'ax/yb'], no: ['b', 'abc'] },
    'x**/b': { yes: ['x/b', 'xy/z/b'], no: ['xb', 'b'] },
    'a?c': { yes: ['abc', 'a😀c'], no: ['a/c', 'ac', 'abbc'] },
    '😀*': { yes: ['😀', '😀a'], no: ['a'] },
    'a.b+(c)|$^': { yes: ['a.b+(c)|$^'], no: ['aXb+(c)|$^', 'a'] },
    'index.html': { yes: ['index.html'], no: ['x/index.html', 'indexXhtml'] },
  }
  for (const [glob, { yes, no }] of Object.entries(cases)) {
    const matches = createGlob(glob)
    for (const path of yes) assert.equal(matches(path), true, `${glob} ${path}`)
    for (const path of no) assert.equal(matches(path), false, `${glob} ${path}`)
  }
})

test('the time of a glob is bounded', () => {
  const matches = createGlob(`${'**a*'.repeat(60)}b`)
  assert.ok(cpuMsOf(() => assert.equal(matches('a'.repeat(1_024)), false)) < 2_000)
})
