import assert from 'node:assert/strict'
import test from 'node:test'
import { FORMATS, hasControlCharacters } from './formats.ts'

const check = (format: string, text: string): boolean => FORMATS[format]!(text)

test('a display name takes what people write', () => {
  for (const name of [
    'Arena',
    'Ünïcode 名前',
    '👩‍👩‍👧‍👦',
    'עברית',
    '<script>',
    '{{7*7}}',
    '=cmd()',
    ' padded ',
    'a\u00a0b',
  ]) {
    assert.equal(check('display-name', name), true, JSON.stringify(name))
  }
})

test('a display name has something to see and nothing that controls', () => {
  for (const name of [
    '',
    ' ',
    '\u00a0\u2003',
    '\u200b',
    '\u3164',
    'a\nb',
    'a\tb',
    'a\u0000',
    '\u007f',
    'a\u0085',
    'a\u2028',
    'x\u202ey',
    '\u2066x',
  ]) {
    assert.equal(check('display-name', name), false, JSON.stringify(name))
  }
})

test('an id has one spelling', () => {
  assert.equal(check('uuid', '0190163d-8694-739b-aea5-966c26f8ad91'), true)
  for (const id of [
    '0190163D-8694-739B-AEA5-966C26F8AD91',
    '0190163d8694739baea5966c26f8ad91',
    '{0190163d-8694-739b-aea5-966c26f8ad91}',
    '0190163d-8694-739b-aea5-966c26f8ad91\n',
    'urn:uuid:0190163d-8694-739b-aea5-966c26f8ad91',
    '',
  ]) {
    assert.equal(check('uuid', id), false, JSON.stringify(id))
  }
})

test('a time is RFC 3339 and on the calendar', () => {
  for (const time of [
    '2024-02-29T00:00:00Z',
    '2024-01-31T23:59:59.123Z',
    '2000-02-29T00:00:00+14:00',
    '9999-12-31T00:00:00.000000000Z',
    new Date(0).toISOString(),
  ]) {
    assert.equal(check('date-time', time), true, time)
  }
  for (const time of [
    '2023-02-29T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2024-13-01T00:00:00Z',
    '2024-00-01T00:00:00Z',
    '2024-04-31T00:00:00Z',
    '2024-01-01T24:00:00Z',
    '2024-01-01T00:00:60Z',
    '2024-01-01t00:00:00z',
    '2024-01-01 00:00:00Z',
    '2024-01-01',
    '+10000-01-01T00:00:00Z',
    '2024-01-01T00:00:00',
    '2024-01-01T00:00:00.Z',
  ]) {
    assert.equal(check('date-time', time), false, time)
  }
})

test('long adversarial texts are checked at once', () => {
  const before = process.threadCpuUsage()
  for (const text of [
    'a'.repeat(100_000),
    ' '.repeat(100_000),
    '0-'.repeat(50_000),
    `2024-01-01T00:00:00.${'1'.repeat(100_000)}`,
  ]) {
    for (const format of Object.values(FORMATS)) format(text)
    hasControlCharacters(text)
  }
  // Processor time, which other processes of the machine do not add to.
  const { user, system } = process.threadCpuUsage(before)
  assert.ok(user + system < 500_000)
})
