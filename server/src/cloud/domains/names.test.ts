import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../config/read-config.ts'
import { requireDomain } from './names.ts'

const PLATFORM = { main: 'hub.muster.co.uk', cdn: 'cdn.sites.dev', job: 'lobbies.net' }

test('a domain has one spelling', () => {
  const spellings = {
    'Play.Example.COM': 'play.example.com',
    'example.com.': 'example.com',
    'bücher.example.com': 'xn--bcher-kva.example.com',
    'BÜCHER.example.com': 'xn--bcher-kva.example.com',
    'xn--bcher-kva.example.com': 'xn--bcher-kva.example.com',
    'game.other.co.uk': 'game.other.co.uk',
    'player.github.io': 'player.github.io',
  }
  for (const [text, name] of Object.entries(spellings)) assert.equal(requireDomain(PLATFORM, text), name)
})

test('what is no name, no name below a public suffix, or the platform’s own is refused', () => {
  const refused = [
    ...['', '.', 'com', 'co.uk', 'github.io', 'localhost', 'game.localhost', 'game.local', 'game.test', 'intranet'],
    ...[
      '127.0.0.1',
      '2130706433',
      '127.1',
      '[::1]',
      '::1',
      '1.2.3',
      'a_b.example.com',
      '-a.example.com',
      'a..example.com',
    ],
    ...['example.com:80', 'http://example.com', 'example.com/x', 'a b.example.com', 'u@example.com', '*.example.com'],
    ...[
      'exam\u00adple.com',
      'exa%6dple.com',
      `${'a'.repeat(64)}.example.com`,
      `${'a.'.repeat(125)}example.com`,
      'a\0.example.com',
    ],
    ...['hub.muster.co.uk', 'muster.co.uk', 'other.muster.co.uk', 'x.cdn.sites.dev', 'sites.dev', 'a.lobbies.net'],
  ]
  for (const text of refused) assert.throws(() => requireDomain(PLATFORM, text), { code: 'CDN_INVALID_DOMAIN' }, text)
})

test('production demands three registrable domains, as the public suffix list has them', () => {
  const start = (main: string, cdn: string, job: string) =>
    readConfig({ MUSTER_DOMAIN_MAIN: main, MUSTER_DOMAIN_CDN: cdn, MUSTER_DOMAIN_JOB: job })
  for (const domains of [
    ['a.example.com', 'b.example.com', 'c.example.org'],
    ['hub.shop.co.uk', 'cdn.shop.co.uk', 'lobby.other.co.uk'],
    ['muster.github.io', 'x.muster.github.io', 'other.github.io'],
  ] as [string, string, string][]) {
    assert.throws(() => start(...domains), /three different registrable domains/, domains.join(' '))
  }
  assert.equal(start('one.co.uk', 'two.co.uk', 'three.co.uk').mode, 'production')
  assert.equal(start('one.github.io', 'two.github.io', 'three.github.io').mode, 'production')
})
