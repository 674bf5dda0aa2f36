import assert from 'node:assert'
import { test } from 'node:test'
import { ApiError } from '@musterhost/contract'
import { createKeys } from '../tokens/keys.ts'
import { newObjectKey } from './objects.ts'
import { type PutGrant, presignPut, verifyPut } from './presign.ts'

const NOW = 1_767_225_600_000
const BASE = 'http://localhost:8080'
const keys = createKeys()
const object_key = newObjectKey()

function signed(change: Partial<PutGrant> = {}): { grant: PutGrant; url: string } {
  const grant = {
    object_key,
    content_length: 12,
    content_type: 'text/html; charset=utf-8',
    expire_ms: NOW + 1,
    ...change,
  }
  const url = presignPut(keys, { base_url: BASE, ...grant })
  assert.ok(url.startsWith(`${BASE}/objects/${grant.object_key}?`))
  return { grant, url: url.slice(BASE.length) }
}

type Headers = Record<string, string | undefined>

function requestOf(url: string, headers: Headers = {}, method = 'PUT') {
  return { method, url, headers: { 'content-length': '12', 'content-type': 'text/html; charset=utf-8', ...headers } }
}

function reasonOf(url: string, headers?: Headers, method?: string, now_ms = NOW): string {
  try {
    verifyPut(keys, requestOf(url, headers, method), now_ms)
  } catch (error) {
    assert.ok(error instanceof ApiError && error.code === 'UPLOAD_FORBIDDEN', String(error))
    return String(error.metadata.reason)
  }
  return 'allowed'
}

test('a presigned address allows exactly its own put', () => {
  for (const change of [{}, { content_length: 0 }, { content_type: null }, { content_length: 99_999_999_999 }]) {
    const { grant, url } = signed(change)
    const headers = { 'content-length': String(grant.content_length) }
    assert.deepStrictEqual(verifyPut(keys, requestOf(url, headers), NOW), grant)
  }
})

test('an address without a content type leaves the type to the client', () => {
  const { url } = signed({ content_type: null })
  assert.strictEqual(reasonOf(url, { 'content-type': undefined }), 'allowed')
  assert.strictEqual(reasonOf(url, { 'content-type': 'image/png' }), 'allowed')
})

test('every difference from the signed address is refused', () => {
  const { url } = signed()
  const query = url.slice(url.indexOf('?') + 1)
  const parameters = query.split('&')
  const path = `/objects/${object_key}`
  const cases: [string, string, Headers?, string?, number?][] = [
    ['allowed', url],
    ['method', url, {}, 'POST'],
    ['method', url, {}, 'GET'],
    ['method', url, {}, 'put'],
    ['method', url, {}, 'DELETE'],
    ['expired', url, {}, 'PUT', NOW + 1],
    ['expired', url, {}, 'PUT', NOW + 1e12],
    ['content_length', url, { 'content-length': '11' }],
    ['content_length', url, { 'content-length': '13' }],
    ['content_length', url, { 'content-length': '012' }],
    ['content_length', url, { 'content-length': '+12' }],
    ['content_length', url, { 'content-length': '12.0' }],
    ['content_length', url, { 'content-length': '1.2e1' }],
    ['content_length', url, { 'content-length': '0xc' }],
    ['content_length', url, { 'content-length': '18446744073709551628' }],
    ['content_length', url, { 'content-length': undefined }],
    ['transfer_encoding', url, { 'content-length': undefined, 'transfer-encoding': 'chunked' }],
    ['transfer_encoding', url, { 'transfer-encoding': 'chunked' }],
    ['content_type', url, { 'content-type': 'text/plain' }],
    ['content_type', url, { 'content-type': undefined }],
    ['content_type', url, { 'content-type': 'text/html' }],
    ['form', path, { authorization: `Bearer ${query}` }],
    ['form', `${path}?`],
    ['form', `${path}/?${query}`],
    ['form', `//objects/${object_key}?${query}`],
    ['form', `/objects/./${object_key}?${query}`],
    ['form', `/objects%2F${object_key}?${query}`],
    ['form', `/Objects/${object_key}?${query}`],
    ['form', `/objects/${object_key.toUpperCase()}Z?${query}`],
    ['form', `/objects/../objects/${object_key}?${query}`],
    ['form', `/objects/%30${object_key.slice(1)}?${query}`],
    ['signature', `/objects/${newObjectKey()}?${query}`],
    ['form', `${url}&signature=00`],
    ['form', `${url}&x=1`],
    ['form', `${url}&`],
    ['form', `${url}#`],
    ['form', `${url}\0`],
    ['form', `${url}\n`],
    ['form', ` ${url}`],
    ['form', `${BASE}${url}`],
    ['form', url.replace('text%2Fhtml', 'text/html')],
    ['form', url.replace('text%2Fhtml', 'text%2fhtml')],
    ['form', url.replace('%20', '+')],
    ['form', url.replace('%20', ' ')],
    ['form', url.replace('text', '%74ext')],
    ['form', url.replace('text', '%FFext')],
    ['form', url.replace('text', '%')],
    ['signature', url.replace('text', 'tex')],
    ['signature', url.replace('text', 'te%CC%81xt')],
    ['signature', url.replace('text', 't%C3%A9xt')],
    ['form', url.replace('content_length=12', 'content_length=012')],
    ['form', url.replace('content_length=12', 'content_length=1e1')],
    ['form', url.replace('content_length=12', 'content_length=-12')],
    ['form', url.replace('content_length=12', 'content_length=9007199254740993')],
    ['form', url.replace('content_length=12', 'content_length=18446744073709551628')],
    ['form', url.replace('content_length=12', 'content%5Flength=12')],
    ['form', url.replace('content_length=12', 'content_length=12&content_length=12')],
    ['signature', url.replace('content_length=12', 'content_length=13')],
    ['signature', url.replace(String(NOW + 1), String(NOW + 2))],
    ['signature', url.replace(String(NOW + 1), '9007199254740991')],
    ['form', url.replace(/[0-9a-f]+$/, (hex) => hex.toUpperCase())],
    ['form', url.replace(/[0-9a-f]+$/, '')],
    ['form', url.replace(/[0-9a-f]+$/, (hex) => `%${hex.charCodeAt(0).toString(16)}${hex.slice(1)}`)],
    ['signature', url.slice(0, -2)],
    ['form', url.slice(0, -1)],
    ['signature', `${url}00`],
    ['form', `${url}0`],
    ['form', `${url}${'00'.repeat(2000)}`],
    ['form', `${path}?${parameters.toReversed().join('&')}`],
    ...parameters.map((left): [string, string] => {
      const rest = parameters.filter((parameter) => parameter !== left).join('&')
      return [left.startsWith('content_type') ? 'signature' : 'form', `${path}?${rest}`]
    }),
  ]
  for (const [reason, address, headers, method, now_ms] of cases) {
    assert.strictEqual(
      reasonOf(address, headers, method, now_ms),
      reason,
      `${method ?? 'PUT'} ${JSON.stringify(address)}`,
    )
  }
})

test('an address of another platform is refused', () => {
  const { url } = signed()
  assert.throws(() => verifyPut(createKeys(), requestOf(url), NOW), { code: 'UPLOAD_FORBIDDEN' })
})

test('a flip of any single bit of the address is refused', () => {
  const { url } = signed()
  const bytes = Buffer.from(url, 'latin1')
  let flips = 0
  for (let at = 0; at < bytes.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const flipped = Buffer.from(bytes)
      flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << bit), at)
      assert.match(reasonOf(flipped.toString('latin1')), /^(?:form|signature)$/, `bit ${bit} of byte ${at}`)
      flips += 1
    }
  }
  assert.strictEqual(flips, url.length * 8)
})

test('a flip of any single bit of the signature itself is refused', () => {
  const { url } = signed()
  const head = url.slice(0, url.lastIndexOf('=') + 1)
  const signature = Buffer.from(url.slice(head.length), 'hex')
  for (let bit = 0; bit < signature.length * 8; bit++) {
    const flipped = Buffer.from(signature)
    flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
    assert.strictEqual(reasonOf(`${head}${flipped.toString('hex')}`), 'signature')
  }
})

test('a content type that no header can carry is not signed', () => {
  for (const content_type of ['', ' text/html', 'text/html ', 'text/\nhtml', 'tëxt/html', 'a'.repeat(128)]) {
    assert.throws(() => signed({ content_type }), { code: 'UPLOAD_INVALID' }, content_type)
  }
  const { url } = signed({ content_type: `x/${"!'()*".repeat(25)}` })
  assert.strictEqual(reasonOf(url, { 'content-type': `x/${"!'()*".repeat(25)}` }), 'allowed')
  assert.strictEqual(new URL(url, BASE).href, `${BASE}${url}`)
})
