import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { VerificationConfig } from '@musterhost/contract'
import { checkActions, withOneName } from '@musterhost/contract/version-check'
import { readConfig } from '../../config/read-config.ts'
import { platformRules } from './platform-rules.ts'

const DEVELOPMENT = readConfig({})
const PRODUCTION = readConfig({
  MUSTER_DOMAIN_MAIN: 'main.example.org',
  MUSTER_DOMAIN_CDN: 'cdn.example.net',
  MUSTER_DOMAIN_JOB: 'job.example.com',
})
const URL = 'https://gate.example.org/x?y=1'

/** `where reason` of each mistake. */
function check(verification_config: VerificationConfig, config = DEVELOPMENT): string[] {
  const errors = checkActions(platformRules(config).checkUrl, { join: { enabled: true, verification_config } }, [
    'actions',
  ])
  return errors.map(({ path, reason }) => `${path.slice(3).join('.')} ${reason}`)
}

test('an address is over TLS in production, on a port that is nobody else’s, and public', () => {
  for (const url of [URL, 'https://gate.example.org:8443/', 'https://192.88.98.1/', 'https://GATE.example.org']) {
    assert.deepEqual(check({ url }, PRODUCTION), [], url)
  }
  assert.deepEqual(check({ url: 'http://gate.example.org/' }), [])
  assert.deepEqual(check({ url: 'http://gate.example.org/' }, PRODUCTION), ['url invalid'])
  const invalid = [
    ...['ftp://gate.example.org/', 'gate.example.org', 'https://', 'https://user:pw@gate.example.org/', `${URL}#x`],
    ...[22, 25, 5432, 6379, 8080, 8081].map((port) => `https://gate.example.org:${port}/`),
    ...['https://gate/', `https://gate.example.org/${'x'.repeat(2_048)}`],
  ]
  for (const url of invalid) assert.deepEqual(check({ url }), ['url invalid'], url)
  // What the parser would remove or encode: the text that is kept must be the address that is called.
  const rewritten = [
    ...[
      'http://example.com/ HTTP/1.1\r\nHost: b',
      'http://example.com/\tx',
      ' http://example.com/',
      `${URL}\n`,
      `${URL} `,
    ],
    ...[
      'https://exam\u00adple.com/',
      'https://example.com/\u200b',
      'https://example.com/a\u2028b',
      'https://example.com/a b',
    ],
    ...[
      'https:example.com/',
      'https:/example.com/',
      'https:///example.com/',
      'https:\\\\example.com\\x',
      'https://a.example.com\\@b',
    ],
  ]
  for (const url of rewritten) {
    assert.deepEqual(check({ url }), ['url invalid'], JSON.stringify(url))
    assert.deepEqual(
      checkActions(null, { join: { enabled: true, verification: { url } } }, []).length,
      1,
      'offline too',
    )
  }
  assert.deepEqual(check({ url: 'https://example.com/a%20b?c=%0d%0a' }), [])
  assert.deepEqual(check({ url: 'HTTPS://m\u00fcnchen.example.org/' }), [])
  const inside = [
    ...[
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f.1',
      '0177.0.0.1',
      '[::1]',
      '[::ffff:127.0.0.1]',
      'localhost',
      'LOCALHOST.',
    ],
    ...['0.0.0.0', '169.254.169.254', '10.0.0.1', '[fd00::1]', '100.64.0.1', 'gate.local', '①②⑦.0.0.1'],
  ]
  for (const host of inside) assert.deepEqual(check({ url: `https://${host}/` }), ['url address_not_public'], host)
  const own = readConfig({ DATABASE_URL: 'postgres://muster@db.example.org:6432/muster' })
  assert.deepEqual(check({ url: 'https://gate.example.org:6432/' }, own), ['url invalid'])
  const allowing = readConfig({ MUSTER_FETCH_PRIVATE_NETWORKS: '10.0.0.0/8' })
  assert.deepEqual(check({ url: 'https://10.0.0.1/' }, allowing), [])
})

test('a header says nothing of the message it travels in, and is one line', () => {
  const ok = { 'X-Gate-Key': 'a b\tc', authorization: 'Bearer x', 'content-type': 'text/x', 'x-latin': 'é', '~': '~' }
  assert.deepEqual(check({ url: URL, headers: ok }), [])
  for (const name of [
    'Host',
    'Content-Length',
    'transfer-encoding',
    'Connection',
    'Upgrade',
    'Expect',
    'Proxy-Authorization',
  ]) {
    assert.deepEqual(check({ url: URL, headers: { [name]: 'x' } }), [`headers.${name} forbidden`])
  }
  for (const name of ['', ' ', 'a b', 'a:', 'ä', 'a\r\nb', 'a\0']) {
    assert.deepEqual(check({ url: URL, headers: { [name]: 'x' } }), [`headers.${name} invalid`])
  }
  const proto = JSON.parse('{"__proto__":"x"}') as Record<string, string>
  assert.deepEqual(check({ url: URL, headers: proto }), ['headers.__proto__ forbidden'])
  for (const value of ['a\r\nb: c', 'a\0', ' a', 'a ', 'ł', '\x7f', '\x85']) {
    assert.deepEqual(check({ url: URL, headers: { x: value } }), ['headers.x invalid'], JSON.stringify(value))
  }
  assert.deepEqual(check({ url: URL, headers: { x: '' } }), ['headers.x required'])
  assert.deepEqual(check({ url: URL, headers: { 'x-a': '1', 'X-A': '2' } }), ['headers.X-A not_unique'])
  assert.deepEqual(check({ url: URL, headers: { ['x'.repeat(129)]: '1' } }), [`headers.${'x'.repeat(129)} too_long`])
  const endless = { ['x'.repeat(100_000)]: '1' }
  assert.deepEqual(check({ url: URL, headers: endless }), [`headers.${'x'.repeat(256)}… too_long`, 'headers too_long'])
  assert.deepEqual(check({ url: URL, headers: { a: 'x'.repeat(4_096), b: 'x'.repeat(4_096) } }), ['headers too_long'])
})

test('both names are taken, one at a time, and one is kept', () => {
  const both = { enabled: true, verification_config: { url: URL }, verification: { url: URL } }
  const errors = checkActions(platformRules(DEVELOPMENT).checkUrl, { find: both }, ['actions'])
  assert.deepEqual(
    errors.map(({ path, reason }) => [path, reason]),
    [[['actions', 'find', 'verification'], 'conflicts']],
  )
  const later = { enabled: true, verification: { url: 'x' } }
  assert.deepEqual(checkActions(platformRules(DEVELOPMENT).checkUrl, { create: later }, ['actions'])[0]?.path, [
    'actions',
    'create',
    'verification',
    'url',
  ])
  const config = { matchmaker: { game_modes: { a: { actions: { join: later } }, b: {} } } }
  const kept = { enabled: true, verification_config: { url: 'x' } }
  assert.deepEqual(withOneName(config), { matchmaker: { game_modes: { a: { actions: { join: kept } }, b: {} } } })
  assert.ok('verification' in config.matchmaker.game_modes.a.actions.join, 'what was sent is left alone')
})
