import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OPERATIONS } from '@musterhost/contract/operations'
import type { RequestHead } from '../http/head.ts'
import { SMALL_BODY_BYTES_MAX } from '../limits.ts'
import { classOf } from './request-class.ts'

function classFor(method: string, path: string, more: Partial<RequestHead> = {}): string {
  const head = { method, is_upgrade: false, framing: 'none', ...more } as RequestHead
  return classOf(head, path)
}

test('finds, joins, creates and calls of lobbies are of class seat', () => {
  const seats = OPERATIONS.filter(({ method, path }) => classFor(method, path) === 'seat').map(({ id }) => id)
  assert.deepEqual(seats, [
    'lobbies.find',
    'lobbies.join',
    'lobbies.create',
    'lobbies.allocate',
    'lobbies.ready',
    'lobbies.setClosed',
    'lobbies.setState',
    'lobbies.setPlayers',
    'lobbies.changeOwn',
    'lobbies.stop',
    'lobbies.result',
    'players.connected',
    'players.disconnected',
    'ratings.getPlayers',
  ])
  assert.equal(classFor('POST', '/v1/lobbies/find'), 'seat')
  assert.equal(classFor('POST', '/matchmaker/lobbies/find?x=1'), 'seat')
  for (const path of ['/matchmaker/lobbies/find/', '/matchmaker/lobbies/fin%64', '/matchmaker//lobbies/find']) {
    assert.equal(classFor('POST', path), 'call')
  }
  assert.equal(classFor('GET', '/matchmaker/lobbies/find'), 'call')
})

test('every operation with a watch_index is of class wait when the request sends one', () => {
  for (const { method, path, query, aliases } of OPERATIONS) {
    for (const one of [path, ...aliases]) {
      const asked = one.replace(/\{\w+\}/g, '0190163d-8694-739b-aea5-966c26f8ad91')
      const is_watch = 'watch_index' in query.properties
      if (is_watch) assert.equal(classFor(method, asked), 'call')
      for (const member of ['watch_index=1', 'key=a&watch_index=1', 'watch%5Findex=1']) {
        const expected = is_watch ? 'wait' : classFor(method, one)
        assert.equal(classFor(method, `${asked}?${member}`), expected, `${method} ${asked}?${member}`)
      }
    }
  }
  assert.equal(classFor('GET', '/kv/entries?key=watch_index'), 'call')
})

test('a large body or one of unknown length is of class upload, a WebSocket of class live', () => {
  const find = '/matchmaker/lobbies/find'
  assert.equal(classFor('POST', find, { framing: SMALL_BODY_BYTES_MAX }), 'seat')
  assert.equal(classFor('POST', find, { framing: SMALL_BODY_BYTES_MAX + 1 }), 'upload')
  assert.equal(classFor('POST', find, { framing: 'chunked' }), 'upload')
  assert.equal(classFor('PUT', '/objects/key', { framing: 10_000_000 }), 'upload')
  assert.equal(classFor('GET', '/identity/events/live?watch_index=1', { is_upgrade: true }), 'live')
})
