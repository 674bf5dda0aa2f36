import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromJson, type JsonValue } from '@bufbuild/protobuf'
import { askedBy } from './mapping.ts'
import { ALLOCATION_REQUEST, type AllocationRequest } from './messages.ts'

const ask = (json: JsonValue) =>
  askedBy(fromJson(ALLOCATION_REQUEST, json, { ignoreUnknownFields: true }) as unknown as AllocationRequest, 'default')
const agonesOf = (json: JsonValue) => (ask(json).body.lobby_config as { agones: unknown }).agones

test('the fleet and the region of the first selector for a ready server are the game mode and the region', () => {
  const { namespace, body } = ask({
    namespace: 'staging',
    scheduling: 'Distributed',
    priorities: [{ type: 'List', key: 'players' }],
    gameServerSelectors: [
      { gameServerState: 'ALLOCATED', matchLabels: { 'agones.dev/fleet': 'running' } },
      {
        gameServerState: 'READY',
        matchLabels: { 'agones.dev/fleet': 'duel', 'topology.kubernetes.io/region': 'frankfurt', build: '7' },
        counters: { rooms: { minAvailable: '1' } },
      },
    ],
  })
  assert.deepEqual([namespace, body.game_mode, body.region], ['staging', 'duel', 'frankfurt'])
  assert.deepEqual((body.lobby_config as { agones: { labels: object } }).agones.labels, { build: '7' })
})

test('requests without selectors, of older clients, and for the namespace default have their defaults', () => {
  assert.deepEqual(ask({}).namespace, null)
  assert.deepEqual(ask({ namespace: 'default' }).namespace, null)
  assert.equal(ask({}).body.game_mode, 'default')
  const required = { matchLabels: { 'agones.dev/fleet': 'duel', a: '1' } }
  const older = ask({
    requiredGameServerSelector: required,
    preferredGameServerSelectors: [{ matchLabels: { b: '2' } }],
  })
  assert.equal(older.body.game_mode, 'duel')
  assert.deepEqual(agonesOf({ requiredGameServerSelector: required, metaPatch: { labels: { c: '3' } } }), {
    labels: { a: '1', c: '3' },
    annotations: {},
    counters: {},
    lists: {},
  })
})

test('a request that wants only a running server finds none', () => {
  const selectors = [{ gameServerState: 'ALLOCATED', matchLabels: { 'agones.dev/fleet': 'duel' } }]
  assert.throws(() => ask({ gameServerSelectors: selectors }), { code: 8, message: /no available GameServer/ })
})

test('a request names its players for a seat each, or the lobby stays without players', () => {
  const seats = (players: string) => ask({ metadata: { annotations: { 'muster.dev/players': players } } }).body
  assert.deepEqual([seats('3').players.length, seats('3').keep_ms], [3, undefined])
  const unknown = ask({}).body
  assert.deepEqual([unknown.players.length, unknown.keep_ms], [1, 86_400_000])
  for (const wrong of ['0', '257', '-1', 'all', '']) assert.throws(() => seats(wrong), { code: 3 })
})

test('counters and lists of a request are changes at the start, with all digits', () => {
  const agones = agonesOf({
    counters: {
      rooms: { action: 'Increment', amount: '9007199254740993', capacity: '9223372036854775807' },
      left: { action: 'Decrement', amount: '2' },
    },
    lists: { maps: { addValues: ['ice'], capacity: '5' } },
  })
  assert.deepEqual(agones, {
    labels: {},
    annotations: {},
    counters: {
      rooms: { amount: '9007199254740993', capacity: '9223372036854775807' },
      left: { amount: '-2' },
    },
    lists: { maps: { addValues: ['ice'], deleteValues: [], capacity: '5' } },
  })
  assert.throws(() => ask({ counters: { rooms: { action: 'Double' } } }), { code: 3 })
})
