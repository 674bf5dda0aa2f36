import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '@musterhost/contract'
import fc from 'fast-check'
import { chooseRepresentation, isKnown, rangeOf } from './representation.ts'
import type { SiteEntry, SiteFile } from './sites.ts'

const ETAG = '"tag"'
const fileOf = (content_length: number): SiteFile =>
  ({ content_length, etag: ETAG, content_type: 'text/html', content_encoding: null }) as SiteFile

/** Headers that resemble ranges. */
const pieces = fc.constantFrom(
  'bytes',
  '=',
  '-',
  ',',
  ' ',
  '\t',
  '0',
  '1',
  '9',
  '10',
  '99',
  '999999999999999',
  'x',
  '+',
  '.',
  ';',
)
const headers = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(''))
const place = fc.option(fc.nat(120), { nil: null })

test('every range lies within the file', () => {
  fc.assert(
    fc.property(fc.oneof(headers, fc.string({ maxLength: 40 })), fc.nat(100), (header, content_length) => {
      try {
        const range = rangeOf(header, undefined, fileOf(content_length))
        if (range === null) return
        assert.ok(0 <= range.start && range.start <= range.end && range.end < content_length, JSON.stringify(range))
      } catch (error) {
        assert.ok(error instanceof ApiError && error.code === 'CDN_RANGE_NOT_SATISFIABLE', String(error))
      }
    }),
    { numRuns: 10_000 },
  )
})

test('a range has the bytes that RFC 9110 defines', () => {
  fc.assert(
    fc.property(place, place, fc.nat(100), (first, last, content_length) => {
      const bytes = Array.from({ length: content_length }, (_, index) => index)
      const wanted =
        first === null
          ? bytes.slice(-(last ?? 0) || content_length)
          : bytes.slice(first, last === null ? undefined : last + 1)
      const ask = () => rangeOf(`bytes=${first ?? ''}-${last ?? ''}`, undefined, fileOf(content_length))
      if ((first === null && last === null) || (first !== null && last !== null && last < first))
        assert.equal(ask(), null)
      else if (wanted.length === 0) assert.throws(ask, { code: 'CDN_RANGE_NOT_SATISFIABLE' })
      else assert.deepEqual(ask(), { start: wanted[0], end: wanted.at(-1) })
    }),
    { numRuns: 5_000 },
  )
})

test('the chosen encoding is always one that the request accepts', () => {
  const codings = fc.constantFrom('br', 'gzip', 'x-gzip', '*', 'identity', 'deflate', '', 'BR', 'brr')
  const weights = fc.constantFrom('', ';q=0', ';q=0.000', '; q=0 ', ';q=0.5', ';q=1', ';q', ';;')
  const list = fc.array(fc.tuple(codings, weights), { maxLength: 5 })
  const [br, gzip, plain] = [fileOf(1), fileOf(2), fileOf(3)]
  const entries = fc.constantFrom<SiteEntry>(
    { file: plain, br, gzip },
    { file: plain, br, gzip: null },
    { file: plain, br: null, gzip },
  )
  fc.assert(
    fc.property(list, entries, (items, entry) => {
      const { file } = chooseRepresentation(entry, items.map((item) => item.join('')).join(','), false)
      if (file === plain) return
      const names = file === br ? ['br'] : ['gzip', 'x-gzip']
      const said = items.filter(([coding]) => names.includes(coding.toLowerCase()) || coding === '*')
      assert.ok(said.length > 0, JSON.stringify(items))
      assert.ok(
        said.some(([, weight]) => !/q=0(?:\.0*)?\s*$/.test(weight)),
        JSON.stringify(items),
      )
    }),
    { numRuns: 5_000 },
  )
})

test('a tag matches when it is in the list', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 30 }), (header) => {
      if (isKnown(header, ETAG)) assert.ok(header.includes(ETAG) || header.split(',').some((tag) => tag.trim() === '*'))
      assert.ok(isKnown(`${header.replaceAll('"', '')},${ETAG}`, ETAG))
    }),
    { numRuns: 2_000 },
  )
})
