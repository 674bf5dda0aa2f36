import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QueueWorld } from '../../../../test/matchmaker/matching/queue-world.ts'
import { at, idOf } from '../../../../test/matchmaker/plain-requests.ts'
import * as decide from '../decide.ts'
import { setIdleRules } from '../evolve.ts'
import { Book } from '../state.ts'
import { progressOf } from './find-match.ts'
import { PLACE_MS } from './matching.ts'
import { countWaiting, oldestWaiting, type WaitingCounts } from './waiting.ts'

const SKILL = { near: 'skill', within: 100, widen: { every_s: 5, by: 50, to: 600 } }
const DUEL = { size: { min: 2, max: 2 }, rules: [SKILL] }
const skilled = (skill: number) => ({ attributes: { skill } })

test('the request that completes a match makes it, with all its seats in one command', () => {
  const world = new QueueWorld(DUEL)
  const first = world.find(skilled(1_000)).asked
  const change_count = world.changes.length
  const { asked: second, result } = world.find(skilled(1_050))
  assert.ok('seat' in result)
  assert.deepEqual(
    world.changes.slice(change_count).map(({ kind }) => kind),
    ['lobby_created', 'ticket_ended', 'player_reserved', 'player_reserved'],
  )
  assert.equal(world.lobbyOf(first), world.lobbyOf(second))
  assert.equal(world.isWaiting(first), false)
})

test('players too far apart meet when the limit of the younger one has widened, and not before', () => {
  const world = new QueueWorld(DUEL)
  const first = world.find(skilled(1_000)).asked
  world.pass(60_000)
  const second = world.find(skilled(1_150)).asked
  world.pass(4_999)
  assert.equal(world.lobbyOf(first), null)
  world.pass(1)
  assert.notEqual(world.lobbyOf(first), null)
  assert.equal(world.lobbyOf(first), world.lobbyOf(second))
})

test('no time is due but the next widening', () => {
  const world = new QueueWorld(DUEL)
  world.find(skilled(0))
  world.settle()
  assert.equal(world.book.matching.dueMs(), world.now_ms + 5_000)
  const plain = new QueueWorld({ size: { min: 2, max: 2 } })
  plain.find()
  plain.settle()
  assert.equal(plain.book.matching.dueMs(), Number.POSITIVE_INFINITY)
})

test('a wait goes on under the same key with its place and its age', () => {
  const world = new QueueWorld(DUEL)
  const first = world.find({ ...skilled(1_000), key: 'a' }).asked
  world.pass(8_000)
  world.return(first)
  world.pass(PLACE_MS - 1)
  const again = world.find({ ...skilled(1_000), key: 'a' })
  assert.deepEqual(again.result, { ticket_id: first.id })
  world.pass(7_000)
  // Both have waited for 10 s and 30 s.
  const second = world.find(skilled(1_150)).asked
  world.pass(5_000)
  assert.equal(world.lobbyOf(first), world.lobbyOf(second))
  assert.notEqual(world.lobbyOf(first), null)
})

test('a match made between two calls is the seat of the second', () => {
  const world = new QueueWorld(DUEL)
  const first = world.find({ ...skilled(1_000), key: 'a' }).asked
  world.return(first)
  world.find(skilled(1_000))
  const { result } = world.find({ ...skilled(1_000), key: 'a' })
  assert.ok('seat' in result)
  assert.equal(result.seat.player_id, first.id)
})

test('a player who has hung up is matched with no other, and is forgotten after a while', () => {
  const world = new QueueWorld(DUEL)
  const first = world.find({ ...skilled(1_000), key: 'a' }).asked
  world.hangUp(first)
  const second = world.find(skilled(1_000)).asked
  assert.equal(world.lobbyOf(second), null)
  assert.equal(world.book.playersOf('192.0.2.1'), 2)
  world.pass(PLACE_MS)
  assert.equal(world.isWaiting(first), false)
  assert.equal(world.book.playersOf('192.0.2.1'), 1)
})

test("a leaver's seat is filled by the one who has waited longest and fits", () => {
  const world = new QueueWorld({ size: { min: 3, max: 3 }, rules: [{ near: 'skill', within: 100 }] })
  const players = [0, 10, 20].map((skill) => world.find(skilled(skill)).asked)
  const lobby_id = world.lobbyOf(players[0]!)!
  world.find(skilled(500))
  world.pass(1_000)
  const older = world.find(skilled(90)).asked
  world.pass(1_000)
  const younger = world.find(skilled(15)).asked
  world.decide(decide.expel(world.book, { player_id: players[1]!.id, lobby_id }, world.now_ms))
  world.settle()
  assert.equal(world.lobbyOf(older), lobby_id)
  assert.equal(world.lobbyOf(younger), null)
})

test('a lobby with a free seat is asked before others who wait', () => {
  const world = new QueueWorld({ size: { min: 2, max: 3 }, start_after_s: 5, rules: [{ near: 'skill', within: 100 }] })
  const [first, second] = [world.find(skilled(0)).asked, world.find(skilled(10)).asked]
  world.pass(5_000)
  assert.equal(world.lobbyOf(first), world.lobbyOf(second))
  world.find(skilled(400))
  const third = world.find(skilled(50)).asked
  assert.equal(world.lobbyOf(third), world.lobbyOf(first))
})

test('a starting lobby counts as open, so a filling lobby starts no second one', () => {
  const world = new QueueWorld({ size: { min: 1, max: 4 }, start_after_s: 0 })
  const asked = Array.from({ length: 4 }, () => world.find().asked)
  assert.equal(new Set(asked.map((one) => world.lobbyOf(one))).size, 1)
  assert.equal(world.book.live_lobby_count, 1)
})

test('a closed lobby gets no more players, and a reopened one does', () => {
  const world = new QueueWorld({ size: { min: 1, max: 4 }, start_after_s: 0 })
  const first = world.find().asked
  const lobby_id = world.lobbyOf(first)!
  world.decide(decide.setClosed(world.book, lobby_id, true))
  const second = world.find().asked
  assert.notEqual(world.lobbyOf(second), lobby_id)
  world.decide(decide.stop(world.book, world.lobbyOf(second)!, 'requested', world.now_ms))
  world.decide(decide.setClosed(world.book, lobby_id, false))
  assert.equal(world.lobbyOf(world.find().asked), lobby_id)
})

test('fill_open_lobbies false leaves lobbies as they began', () => {
  const world = new QueueWorld({ size: { min: 1, max: 4 }, start_after_s: 0, fill_open_lobbies: false })
  const [first, second] = [world.find().asked, world.find().asked]
  assert.notEqual(world.lobbyOf(first), world.lobbyOf(second))
})

test('a newcomer gets the team with room, and makes an uneven lobby no worse', () => {
  const teams = ['red', 'blue'].map((name) => ({ name, min: 1, max: 2 }))
  const world = new QueueWorld({ teams, rules: [{ even_teams: 0 }] })
  const players = Array.from({ length: 4 }, () => world.find().asked)
  assert.deepEqual(players.map((one) => world.teamOf(one)).sort(), ['blue', 'blue', 'red', 'red'])
  const [leaver] = players
  const lobby_id = world.lobbyOf(leaver!)!
  const team = world.teamOf(leaver!)
  world.decide(decide.expel(world.book, { player_id: leaver!.id, lobby_id }, world.now_ms))
  const newcomer = world.find().asked
  assert.equal(world.lobbyOf(newcomer), lobby_id)
  assert.equal(world.teamOf(newcomer), team)
})

test('a match begins in a lobby that stands ready, before another is started', () => {
  const world = new QueueWorld({ size: { min: 2, max: 2 } })
  setIdleRules(world.book, { version_id: null, idle_max: () => 1 })
  const probe = world.find().asked
  const other = world.find().asked
  const lobby_id = world.lobbyOf(probe)!
  world.decide(decide.ready(world.book, lobby_id, world.now_ms))
  for (const { id } of [probe, other]) {
    world.decide(decide.expel(world.book, { player_id: id, lobby_id }, world.now_ms))
  }
  const next = [world.find().asked, world.find().asked]
  assert.deepEqual(
    next.map((one) => world.lobbyOf(one)),
    [lobby_id, lobby_id],
  )
})

test('a waiting player counts in the limit of its client', () => {
  const world = new QueueWorld(DUEL)
  world.find(skilled(0))
  assert.equal(world.book.playersOf('192.0.2.1'), 1)
  world.find(skilled(0))
  assert.equal(world.book.playersOf('192.0.2.1'), 2)
})

test('a party waits as one, gets its seats together, and ends its wait when it changes', () => {
  const world = new QueueWorld({ size: { min: 3, max: 3 } })
  const [leader, friend] = [idOf(900_001), idOf(900_002)]
  const memberOf = (identity_id: string) => {
    const address = '192.0.2.1'
    return { identity_id, address, client: address, user_agent: null, join_ms: world.now_ms }
  }
  world.decide(world.book.parties.create(memberOf(leader), { party_id: idOf(900_003), code: 'ABCD' }))
  world.decide(world.book.parties.join(memberOf(friend), 'ABCD'))
  const party = world.find({ identity_id: leader, has_party: true }).asked
  const single = world.find().asked
  assert.equal(world.lobbyOf(party), world.lobbyOf(single))
  const of_friend = [...world.book.partySeatsOf(friend)].map(({ lobby_id }) => lobby_id)
  assert.deepEqual(of_friend, [world.lobbyOf(single)])

  const waiting = world.find({ identity_id: leader, has_party: true }).asked
  assert.equal(world.isWaiting(waiting), true)
  world.decide(world.book.parties.leave(friend, world.now_ms))
  world.settle()
  assert.equal(world.isWaiting(waiting), false)
})

test('tickets end when another version is deployed or theirs is drained', () => {
  const world = new QueueWorld(DUEL)
  const first = world.find(skilled(0)).asked
  const rollout_version_id = world.book.matching.get(first.id)!.version_id
  setIdleRules(world.book, { version_id: idOf(77), rollout_version_id, idle_max: () => 0 })
  world.settle()
  assert.equal(world.isWaiting(first), true, 'its version is rolled out')
  setIdleRules(world.book, { version_id: idOf(77), idle_max: () => 0 })
  world.settle()
  assert.equal(world.isWaiting(first), false)
})

test('a book that is read again keeps tickets and ages, and matches them when their calls are back', () => {
  const world = new QueueWorld(DUEL)
  const first = world.find({ ...skilled(1_000), key: 'a' }).asked
  world.pass(4_000)
  const ticket = world.changes.find((change) => change.kind === 'ticket_put')
  world.book = new Book()
  world.apply([ticket!])
  const second = world.find(skilled(1_150)).asked
  world.pass(6_000)
  // The first one's call is not back, so the second meets no one.
  assert.equal(world.isWaiting(second), true)
  const { result } = world.find({ ...skilled(1_000), key: 'a' })
  assert.ok('seat' in result)
  assert.equal(result.seat.player_id, first.id)
})

test('a progress says what a request waits for: players missing, and the rule that refused others', () => {
  const world = new QueueWorld({ ...DUEL, size: { min: 4, max: 4 } })
  const first = world.find(skilled(0)).asked
  world.find(skilled(50))
  world.find(skilled(10_000))
  world.settle()
  const progress = progressOf(world.book, first.id, world.now_ms)!
  assert.equal(progress.players_waiting, 3)
  assert.equal(progress.players_missing, 2)
  assert.deepEqual([...progress.counts.refusals], [[0, 1]])
  assert.equal(progress.next_step_ms, 5_000)
})

test('without room nothing is started, the one who asks is refused, and the others wait on', () => {
  const world = new QueueWorld({ size: { min: 2, max: 2 } })
  const first = world.find().asked
  const full = { ...at(world.now_ms), chooseNode: () => null }
  const refused = world.tryFind({}, full)
  assert.ok('refused' in refused && refused.refused === 'MATCHMAKER_REGION_FULL')
  assert.equal(world.isWaiting(first), true)
  assert.equal(world.lobbyOf(world.find().asked), world.lobbyOf(first))
})

test('the oldest requests come first and are bounded, and one whose caller has hung up is counted apart', () => {
  const world = new QueueWorld({ size: { min: 10, max: 10 }, rules: [{ near: 'skill', within: 1 }] })
  const asked = [0, 100, 200, 300].map((skill) => {
    world.pass(1_000)
    return world.find({ ...skilled(skill), key: String(skill) }).asked
  })
  world.hangUp(asked[1]!)
  const { matching } = world.book
  const ids = (count_max: number, mode: string | null = null) =>
    oldestWaiting(matching, mode, count_max).map(({ player_id }) => player_id)
  assert.deepEqual(ids(2), [asked[0]!.id, asked[2]!.id])
  assert.deepEqual(ids(0), [])
  assert.deepEqual(ids(9, 'other'), [])
  const [[game_mode, counts]] = [...countWaiting(matching)] as [[string, WaitingCounts]]
  assert.deepEqual(ids(9, game_mode), [asked[0]!.id, asked[2]!.id, asked[3]!.id])
  assert.deepEqual([counts.ticket_count, counts.player_count, counts.away_count], [3, 3, 1])
  assert.equal(counts.oldest?.player_id, asked[0]!.id)
  // It keeps its age, so it is the second again.
  world.find({ ...skilled(100), key: '100' })
  assert.deepEqual(ids(2), [asked[0]!.id, asked[1]!.id])
})
