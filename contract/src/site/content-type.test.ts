import assert from 'node:assert'
import { test } from 'node:test'
import { contentTypeOf } from './content-type.ts'

test('a valid type of the upload is used, and text is always UTF-8', () => {
  const cases: [path: string, uploaded: string | null, type: string][] = [
    ['a.js', null, 'text/javascript; charset=utf-8'],
    ['a.JS', 'application/octet-stream', 'text/javascript; charset=utf-8'],
    ['a.html', 'image/png', 'image/png'],
    ['a.html', 'text/html; charset=utf-7', 'text/html; charset=utf-8'],
    ['a.svg', null, 'image/svg+xml; charset=utf-8'],
    ['a.wasm', 'application/wasm', 'application/wasm'],
    ['a.html', 'text/html\r\nx: y', 'text/html; charset=utf-8'],
    ['a', 'nonsense', 'application/octet-stream'],
    ['a.constructor', null, 'application/octet-stream'],
    ['', null, 'application/octet-stream'],
  ]
  for (const [path, uploaded, type] of cases) {
    assert.deepEqual(contentTypeOf(path, uploaded), { content_type: type, content_encoding: null }, path)
  }
})

test('a precompressed file is served with the type of its content', () => {
  assert.deepEqual(contentTypeOf('a.js.br', 'application/x-brotli'), {
    content_type: 'text/javascript; charset=utf-8',
    content_encoding: 'br',
  })
  assert.deepEqual(contentTypeOf('a.wasm.gz', 'application/gzip'), {
    content_type: 'application/wasm',
    content_encoding: 'gzip',
  })
  assert.equal(contentTypeOf('a.tar.gz', 'application/gzip').content_encoding, null)
})
