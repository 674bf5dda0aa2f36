import assert from 'node:assert'
import { test } from 'node:test'
import { NameId } from '@musterhost/contract'
import { mediaHost, rawPortsHost } from '../../config/addresses.ts'
import { canonicalHost, createHosts, isRawPortHost } from './hosts.ts'

const regions = [{ name: 'local' }]
const LOBBY_ID = '0197a3b4-0000-7000-8000-0123456789ab'

test('a host has one canonical form', () => {
  const same = ['game.example', 'GAME.example', 'game.example.', 'game.example:80', 'Game.Example.:65535']
  for (const host of same) assert.equal(canonicalHost(host), 'game.example', host)
  assert.equal(canonicalHost('[::1]:8000'), '[::1]')
  assert.equal(canonicalHost('127.0.0.1:8000'), '127.0.0.1')
})

test('an invalid host has no canonical form', () => {
  const bad = [
    '',
    '.',
    '..',
    ':80',
    'a..b',
    '-a.b',
    'a-.b',
    'a_b',
    'a b',
    'a/b',
    'a@b',
    'a:b',
    'a:80:80',
    'a.b..',
    '[::1',
    '::1',
    'münster.example',
  ]
  for (const host of [...bad, 'a\0b', 'a,b', 'a%2eb', `${'a'.repeat(64)}.b`, 'a.'.repeat(200), 'a'.repeat(70_000)]) {
    assert.equal(canonicalHost(host), null, host.slice(0, 80))
  }
})

test('in production a loopback name has no meaning, and the three domains stay separate', () => {
  const domains = { main: 'muster.example', cdn: 'sites.example.net', job: 'play.example.org' }
  const meaningOf = createHosts({ edge_public_host: null, mode: 'production', domains, regions })
  assert.deepEqual(meaningOf('muster.example'), { kind: 'main' })
  assert.deepEqual(meaningOf('puddle-racers.sites.example.net'), {
    kind: 'site',
    game: 'puddle-racers',
    namespace: 'prod',
  })
  assert.deepEqual(meaningOf('puddle--next-up.sites.example.net'), {
    kind: 'site',
    game: 'puddle',
    namespace: 'next-up',
  })
  assert.deepEqual(meaningOf(mediaHost(domains)), { kind: 'media' })
  const lobby = { kind: 'lobby', lobby_id: LOBBY_ID, port_name: 'game-port', region: 'local' }
  assert.deepEqual(meaningOf(`${LOBBY_ID}-game-port.lobby.local.play.example.org`), lobby)
  const raw_ports = rawPortsHost(domains, 'local')
  assert.deepEqual(meaningOf(raw_ports), { kind: 'raw_ports' })
  for (const host of [`${LOBBY_ID}-game-port.lobby.local.play.example.org`, raw_ports]) {
    assert.ok(isRawPortHost(meaningOf(host)), host)
  }
  for (const host of [
    'muster.example',
    'puddle.sites.example.net',
    mediaHost(domains),
    'custom.example',
    'localhost',
  ]) {
    assert.ok(!isRawPortHost(meaningOf(host)), host)
  }
  const nothing = [
    ...['localhost', '127.0.0.1', '[::1]', 'sites.example.net', 'www.muster.example', 'evilmuster.example', 'example'],
    ...['a.b.sites.example.net', 'a--b--c.sites.example.net', '--b.sites.example.net', 'a---b.sites.example.net'],
    ...[`${LOBBY_ID}.lobby.local.play.example.org`, `${LOBBY_ID}-.lobby.local.play.example.org`],
    ...[
      `${LOBBY_ID}-p.lobby.other.play.example.org`,
      `${LOBBY_ID}-p.lobby.local.muster.example`,
      'lobby.local.play.example.org',
    ],
    ...[
      `${LOBBY_ID}-p.local.play.example.org`,
      `x${LOBBY_ID}-p.lobby.local.play.example.org`,
      `${LOBBY_ID}-${'p'.repeat(17)}.lobby.local.play.example.org`,
    ],
  ]
  for (const host of nothing) assert.equal(meaningOf(host), null, host)
})

test("no game can have the host of games' images", () => {
  const [label = ''] = mediaHost({ main: 'a', cdn: 'b', job: 'c' }).split('.')
  const { maxLength } = NameId as { maxLength?: number }
  assert.ok(maxLength !== undefined && label.length > maxLength, label)
})
