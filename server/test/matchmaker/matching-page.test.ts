// The examples of docs/matching.md do what the page says.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { MatchingConfig } from '@musterhost/contract'
import { QueueWorld } from './matching/queue-world.ts'

const PAGE = readFileSync(new URL('../../../docs/matching.md', import.meta.url), 'utf8')
const EXAMPLES = [
  ...PAGE.matchAll(/run by: server\/test\/matchmaker\/matching-page\.test\.ts -->\n```json\n(.+?)```/gs),
].map(([, json]) => JSON.parse(json!) as MatchingConfig)
const [DUEL, ROLES, TOGETHER, MANY] = EXAMPLES

test('the page has four examples', () => {
  assert.equal(EXAMPLES.length, 4)
})

test('a duel waits until the skill of two players fits', () => {
  const world = new QueueWorld(DUEL!)
  const [first, second] = [0, 150].map((skill) => world.find({ attributes: { skill } }).asked)
  world.pass(4_999)
  assert.equal(world.lobbyOf(first!), null)
  world.pass(1)
  assert.ok(world.lobbyOf(first!))
  assert.equal(world.lobbyOf(first!), world.lobbyOf(second!))
})

test('five against five needs its healers, and has two teams of five', () => {
  const world = new QueueWorld(ROLES!)
  const asked = Array.from({ length: 10 }, () => world.find({ attributes: { healer: 0, skill: 100 } }).asked)
  assert.equal(world.lobbyOf(asked[0]!), null)
  const healers = [1, 2].map(() => world.find({ attributes: { healer: 1, skill: 100 } }).asked)
  assert.ok(world.lobbyOf(healers[1]!))
  const players = [...world.book.lobby(world.lobbyOf(healers[1]!)!).players.values()]
  const teams = Object.groupBy(players, ({ match }) => match!.team!)
  assert.deepEqual([teams.red?.length, teams.blue?.length], [5, 5])
  assert.equal(players.filter(({ match }) => match!.attributes.healer === 1).length, 2)
})

test('together: one player begins after 10 s, and later players with a common map get the free seats', () => {
  const world = new QueueWorld(TOGETHER!)
  const first = world.find({ attributes: { maps: ['bay', 'dunes'] } }).asked
  world.pass(10_000)
  const lobby_id = world.lobbyOf(first)
  assert.ok(lobby_id)
  assert.equal(world.lobbyOf(world.find({ attributes: { maps: ['dunes'] } }).asked), lobby_id)
  assert.equal(world.lobbyOf(world.find({ attributes: { maps: ['peak'] } }).asked), null)
})

test('many: thirty begin after 20 s where the worst latency is best, and nobody comes later', () => {
  const world = new QueueWorld(MANY!, 60)
  const latencies = { eu: 70, us: 40 }
  const asking = { regions: ['eu', 'us'], latencies }
  const asked = Array.from({ length: 30 }, () => world.find(asking).asked)
  world.pass(19_999)
  assert.equal(world.lobbyOf(asked[0]!), null)
  world.pass(1)
  const lobby_id = world.lobbyOf(asked[0]!)!
  assert.equal(world.book.lobby(lobby_id).players.size, 30)
  assert.equal(world.book.lobby(lobby_id).region, 'us')
  assert.notEqual(world.lobbyOf(world.find(asking).asked), lobby_id)
})
