import assert from 'node:assert'
import { test } from 'node:test'
import { contentTypeOf, headEncoding } from './content-type.ts'

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

test('a file of Unity has the type of its content, and the encoding of its first bytes', () => {
  const cases = [
    ['Build/a.wasm.unityweb', 'application/vnd.unity', 'application/wasm'],
    ['Build/a.framework.js.unityweb', null, 'text/javascript; charset=utf-8'],
    ['Build/a.symbols.json.unityweb', null, 'application/json; charset=utf-8'],
    ['Build/a.data.unityweb', null, 'application/octet-stream'],
    ['a.unityweb', null, 'application/octet-stream'],
  ] as const
  for (const [path, uploaded, content_type] of cases)
    assert.deepEqual(contentTypeOf(path, uploaded), { content_type, content_encoding: null })
  const comment = Buffer.from('UnityWeb Compressed Content (brotli)')
  // The windows of 4 MB, 64 KiB and 1 KiB, as encoders write them.
  for (const head of ['6b8d00', 'ac11', '216b04'])
    assert.equal(headEncoding(Buffer.concat([Buffer.from(head, 'hex'), comment])), 'br', head)
  assert.equal(headEncoding(Buffer.from('1f8b0800', 'hex')), 'gzip')
  for (const other of ['', '1f8b', 'asm', ' '.repeat(3) + comment.toString().slice(0, -1)])
    assert.equal(headEncoding(Buffer.from(other, 'latin1')), null)
})
