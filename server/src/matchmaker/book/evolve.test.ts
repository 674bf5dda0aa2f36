// How a book changes over time: ends, undo, load, holds, stalls, and the laws.
import assert from 'node:assert'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  at,
  expireAll,
  findRequest,
  grantIn,
  idSource,
  lobbyPlan,
  requestedSeat,
  runningLobby,
  START_MS,
  VERSION,
} from '../../../test/matchmaker/plain-requests.ts'
import type { Decision, Undo } from './commands.ts'
import * as decide from './decide.ts'
import { CONNECTED_MS_MAX } from './decide.ts'
import { apply, dropHolds, forget, load, postpone, setIdleRules } from './evolve.ts'
import { BrokenLaw } from './laws.ts'
import { changeOwn } from './own-lobby.ts'
import { Book, MEMORY_MS } from './state.ts'

const refused = (code: string) => ({ refused: code })
const SECOND = 1_000

/** Everything about a book that its methods tell. */
function stateOf(book: Book): unknown {
  return structuredClone({
    lobbies: [...book.lobbies.values()],
    players: book.players,
    live_lobby_count: book.live_lobby_count,
    due_ms: book.nextDueMs(),
    chosen: decide.find(book, findRequest(), { lobby_id: 'none', player_id: 'none' }, at(START_MS)),
  })
}

test('a lobby without players is stopped after its grace and not before; a new player keeps it', () => {
  const book = new Book()
  const ids = idSource()
  const seat = runningLobby(book, ids, START_MS)
  grantIn(book, decide.disconnected(book, { ...seat, disconnect_key: null }, START_MS))
  assert.equal(decide.expire(book, START_MS + 15 * SECOND - 1), null)
  const next = grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS + 15 * SECOND - 1)))
  assert.equal(next.lobby_id, seat.lobby_id)
  assert.equal(decide.expire(book, START_MS + 60 * SECOND), null)
  const left_ms = START_MS + 60 * SECOND
  grantIn(book, decide.disconnected(book, { ...next, disconnect_key: null }, left_ms))
  assert.deepEqual(decide.expire(book, left_ms + 15 * SECOND), {
    kind: 'lobby_stopped',
    lobby_id: seat.lobby_id,
    ms: left_ms + 15 * SECOND,
    reason: 'idle',
  })
})

test('a lobby that does not become ready in time is stopped, and frees all its seats', () => {
  const book = new Book()
  const ids = idSource()
  const request = findRequest({ plan: lobbyPlan({ ready_within_ms: 60 * SECOND }) })
  const seats = [1, 2, 3].map(() => grantIn(book, decide.find(book, request, ids(), at(START_MS))))
  assert.equal(decide.expire(book, START_MS + 60 * SECOND - 1), null)
  expireAll(book, START_MS + 60 * SECOND)
  const lobby = book.lobbies.get(seats[0]!.lobby_id)!
  assert.equal(lobby.stop_reason, 'never_ready')
  for (const { player_id } of seats) assert.equal(book.players.get(player_id)!.remove_reason, 'lobby_stopped')
})

test('a lobby that has stopped frees its place, its seats and its clients, and is not stopped twice', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS, { players: 3 })
  grantIn(book, decide.stop(book, lobby_id, 'exited', START_MS))
  assert.equal(book.live_lobby_count, 0)
  assert.equal(book.lobbies.get(lobby_id)!.players.size, 0)
  assert.deepEqual(decide.stop(book, lobby_id, 'requested', START_MS), { changes: [], result: false })
  assert.deepEqual(
    decide.join(book, { ...requestedSeat(), lobby_id }, ids(), START_MS),
    refused('MATCHMAKER_LOBBY_STOPPED'),
  )
  const one = findRequest({ client_players_max: 1, lobby_count_max: 1, plan: lobbyPlan() })
  assert.notEqual(grantIn(book, decide.find(book, one, ids(), at(START_MS))).lobby_id, lobby_id)
})

test('a player whose lobby never reports it gone is taken out after eight hours', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id } = runningLobby(book, ids, START_MS)
  grantIn(book, decide.connected(book, { player_id, lobby_id, connect_key: null }, START_MS))
  assert.equal(decide.expire(book, START_MS + CONNECTED_MS_MAX - 1), null)
  expireAll(book, START_MS + CONNECTED_MS_MAX)
  assert.equal(book.players.get(player_id)!.remove_reason, 'too_long')
})

test('what is over is forgotten ten minutes after its end, and not while it may still be undone', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id } = runningLobby(book, ids, START_MS)
  grantIn(book, decide.stop(book, lobby_id, 'exited', START_MS))
  expireAll(book, START_MS + 100 * MEMORY_MS)
  forget(book, START_MS + MEMORY_MS - 1)
  assert.ok(book.players.has(player_id) && book.lobbies.has(lobby_id))
  forget(book, START_MS + MEMORY_MS)
  assert.equal(book.players.size + book.lobbies.size, 0)
  const unknown = refused('MATCHMAKER_LOBBY_NOT_FOUND')
  assert.deepEqual(decide.join(book, { ...requestedSeat(), lobby_id }, ids(), START_MS), unknown)
})

test('nothing that is due hides behind something that is due later, whichever players leave before', () => {
  const seconds = fc.integer({ min: 1, max: 1_000 }).map((count) => count * SECOND)
  const lobby = fc.record({ ready_within_ms: seconds, player_deadline_ms: seconds, idle_grace_ms: seconds })
  fc.assert(
    fc.property(fc.array(lobby, { minLength: 30, maxLength: 30 }), fc.infiniteStream(fc.nat()), (plans, random) => {
      const book = new Book()
      const ids = idSource()
      const soonest = (): number => {
        const lobbies = [...book.lobbies.values()].filter((one) => one.stop_ms === null)
        const players = [...book.players.values()].filter((one) => one.remove_ms === null)
        const idle = lobbies.map((one) => one.idle_ms ?? Number.POSITIVE_INFINITY)
        const ends = [...lobbies.map((one) => one.ready_deadline_ms), ...players.map((one) => one.deadline_ms)]
        return Math.min(...idle, ...ends)
      }
      for (const plan of plans)
        grantIn(book, decide.create(book, { ...requestedSeat(), plan: lobbyPlan(plan) }, ids(), at(START_MS)))
      const waiting = [...book.players.keys()]
      while (waiting.length > plans.length / 2) {
        const [player_id] = waiting.splice(random.next().value % waiting.length, 1)
        grantIn(book, decide.release(book, player_id!, START_MS))
        assert.equal(book.nextDueMs(), soonest())
      }
      for (let due_ms = book.nextDueMs(); due_ms !== null; due_ms = book.nextDueMs()) {
        assert.equal(due_ms, soonest())
        expireAll(book, due_ms)
      }
      assert.equal(book.live_lobby_count, 0)
    }),
    { numRuns: 300 },
  )
})

test('the time in which the platform was away moves every deadline by exactly that time', () => {
  const book = new Book()
  const ids = idSource()
  const reserved = runningLobby(book, ids, START_MS)
  const starting = grantIn(book, decide.create(book, { ...requestedSeat(), plan: lobbyPlan() }, ids(), at(START_MS)))
  const empty = runningLobby(book, ids, START_MS)
  grantIn(book, decide.release(book, empty.player_id, START_MS))
  grantIn(book, changeOwn(book, { lobby_id: empty.lobby_id, keep_ms: 3_600 * SECOND }, START_MS))
  const deadlines = () => ({
    seat: book.players.get(reserved.player_id)!.deadline_ms,
    idle: book.lobbies.get(empty.lobby_id)!.idle_ms!,
    keep: book.lobbies.get(empty.lobby_id)!.keep_until_ms!,
    ready: book.lobbies.get(starting.lobby_id)!.ready_deadline_ms,
  })
  const before = deadlines()
  const due_ms = book.nextDueMs()!
  for (const away_ms of [7 * SECOND, 3_600 * SECOND]) postpone(book, away_ms)
  const moved_ms = 3_607 * SECOND
  assert.deepEqual(deadlines(), {
    seat: before.seat + moved_ms,
    idle: before.idle + moved_ms,
    keep: before.keep + moved_ms,
    ready: before.ready + moved_ms,
  })
  assert.equal(book.nextDueMs(), due_ms + moved_ms)
  assert.equal(decide.expire(book, due_ms + moved_ms - 1), null)
})

test('a load without the lobby of a player loses that player and nobody else', () => {
  const book = new Book()
  const ids = idSource()
  const kept = runningLobby(book, ids, START_MS)
  const lost = runningLobby(book, ids, START_MS)
  const loaded = new Book()
  load(loaded, {
    lobbies: [...book.lobbies.values()].filter((lobby) => lobby.lobby_id === kept.lobby_id),
    players: [...book.players.values()],
  })
  assert.deepEqual([...loaded.players.keys()], [kept.player_id])
  assert.deepEqual(decide.disconnected(loaded, { ...lost, disconnect_key: null }, START_MS), {
    changes: [],
    result: null,
  })
})

test('a code leads to its lobby after a load, is given once, and is free when the lobby is forgotten', () => {
  const [book, loaded] = [new Book(), new Book()]
  const ids = idSource()
  const create = (into: Book) =>
    decide.create(into, { ...requestedSeat(), plan: lobbyPlan({ code: 'KXTRBM' }) }, ids(), at(START_MS))
  const { lobby_id } = grantIn(book, create(book))
  load(loaded, { lobbies: [...book.lobbies.values()] })
  for (const one of [book, loaded]) {
    assert.equal(one.lobby_codes.get('KXTRBM')?.lobby_id, lobby_id)
    assert.deepEqual(create(one), refused('API_NOT_AVAILABLE'))
    grantIn(one, decide.stop(one, lobby_id, 'requested', START_MS))
    forget(one, START_MS + MEMORY_MS)
    assert.equal(one.lobby_codes.size, 0)
    grantIn(one, create(one))
  }
})

test('an undo restores exactly what was there, for every kind of change', () => {
  const book = new Book()
  const ids = idSource()
  const seat = runningLobby(book, ids, START_MS, { players: 2 })
  const starting = grantIn(book, decide.create(book, { ...requestedSeat(), plan: lobbyPlan() }, ids(), at(START_MS)))
  const decisions = [
    decide.find(book, findRequest(), ids(), at(START_MS + 1)),
    decide.create(book, { ...requestedSeat({ seat_key: 'create a' }), plan: lobbyPlan() }, ids(), at(START_MS + 1)),
    decide.ready(book, starting.lobby_id, START_MS + 1),
    decide.setClosed(book, seat.lobby_id, true),
    decide.setStalled(book, seat.lobby_id, true, START_MS + 1),
    decide.setState(book, seat.lobby_id, '{}'),
    changeOwn(book, { lobby_id: seat.lobby_id, keep_ms: 5, tags: { map: 'ice' } }, START_MS + 1),
    decide.connected(book, { ...seat, connect_key: 'key' }, START_MS + 1),
    decide.disconnected(book, { ...seat, disconnect_key: 'key' }, START_MS + 1),
    decide.release(book, starting.player_id, START_MS + 1),
    decide.stop(book, seat.lobby_id, 'requested', START_MS + 1),
  ]
  const before = stateOf(book)
  for (const decision of decisions) {
    assert.ok('changes' in decision && decision.changes.length > 0)
    const undos = decision.changes.map((change) => apply(book, change))
    assert.notDeepEqual(stateOf(book), before)
    for (const undo of undos.reverse()) undo()
    assert.deepEqual(stateOf(book), before)
  }
})

test('a solved captcha counts until the very ms at which it ends, and a refused request does not count', () => {
  const book = new Book()
  const rules = { requests_before_reverify: 2, verification_ttl_ms: 1_000 }
  const isAdmitted = (now_ms: number, has_solved = false): boolean => {
    const decision = decide.admit(book, '192.0.2.1', rules, has_solved, now_ms)
    for (const change of 'changes' in decision ? decision.changes : []) apply(book, change)
    return 'changes' in decision
  }
  assert.equal(isAdmitted(START_MS), false)
  assert.equal(isAdmitted(START_MS, true), true)
  assert.equal(isAdmitted(START_MS + 999), true)
  assert.equal(isAdmitted(START_MS + 1_000), false)
  assert.equal(isAdmitted(START_MS + 999), true)
  assert.equal(isAdmitted(START_MS + 999), false)
  assert.equal(book.isEmpty(), false)
  forget(book, START_MS + 1_000)
  assert.equal(book.isEmpty(), true)
})

test('a place is held until it is a seat, is let go, or its ten seconds are over, and counts everywhere meanwhile', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS, { plan: { max_players_normal: 2, max_players_direct: 2 } })
  const asked = { action: 'join', request: { ...requestedSeat(), lobby_id } } as const
  const isFull = (now_ms: number): boolean => {
    decide.expire(book, now_ms)
    return 'refused' in decide.join(book, { ...requestedSeat(), lobby_id }, ids(), now_ms)
  }
  const hold = (now_ms: number): string => {
    const fresh = ids()
    const decision = decide.hold(book, asked, fresh, at(now_ms))
    assert.ok('changes' in decision && 'hold' in decision.result && decision.changes.length === 0)
    return fresh.player_id
  }
  const late = hold(START_MS)
  assert.equal(isFull(START_MS + 9_999), true)
  assert.equal(isFull(START_MS + 10_000), false)
  assert.deepEqual(decide.seatHeld(book, { player_id: late }, requestedSeat(), at(START_MS + 10_000)), {
    changes: [],
    result: null,
  })
  const free = hold(START_MS)
  dropHolds(book, { player_id: free })
  dropHolds(book, { player_id: free })
  assert.equal(isFull(START_MS), false)
  const good = hold(START_MS)
  grantIn(book, decide.seatHeld(book, { player_id: good }, requestedSeat(), at(START_MS)))
  assert.equal(isFull(START_MS), true)
  assert.equal(book.lobbies.get(lobby_id)?.held_count, 0)
})

test('a held place in a lobby that was stopped, or closed to a find, is none', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS)
  const [finder, joiner] = [ids(), ids()]
  const find = { action: 'find', request: findRequest(), verified_modes: new Set(['default']) } as const
  grantIn(book, decide.hold(book, find, finder, at(START_MS)))
  grantIn(book, decide.hold(book, { action: 'join', request: { ...requestedSeat(), lobby_id } }, joiner, at(START_MS)))
  grantIn(book, decide.setClosed(book, lobby_id, true))
  assert.deepEqual(decide.seatHeld(book, finder, requestedSeat(), at(START_MS)), { changes: [], result: null })
  assert.ok('changes' in decide.seatHeld(book, joiner, requestedSeat(), at(START_MS)))
  grantIn(book, decide.setClosed(book, lobby_id, false))
  grantIn(book, decide.stop(book, lobby_id, 'exited', START_MS))
  for (const { player_id } of [finder, joiner]) {
    assert.deepEqual(decide.seatHeld(book, { player_id }, requestedSeat(), at(START_MS)), { changes: [], result: null })
  }
})

test('a lobby that stalls takes nobody by any way, keeps its players and its count, and is the fullest again when it is back', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id, player_id } = runningLobby(book, ids, START_MS, { players: 2, plan: { tags: { map: 'hill' } } })
  const [finder, joiner] = [ids(), ids()]
  const find = { action: 'find', request: findRequest(), verified_modes: new Set(['default']) } as const
  grantIn(book, decide.hold(book, find, finder, at(START_MS)))
  const join = { ...requestedSeat(), lobby_id }
  grantIn(book, decide.hold(book, { action: 'join', request: join }, joiner, at(START_MS)))
  grantIn(book, decide.setStalled(book, lobby_id, true, START_MS))
  assert.deepEqual(decide.setStalled(book, lobby_id, true, START_MS + 1), { changes: [], result: null })

  for (const tags of [[], [['map', 'hill']] as const]) {
    const refused = { refused: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' }
    assert.deepEqual(decide.find(book, findRequest({ tags }), ids(), at(START_MS)), refused)
  }
  assert.deepEqual(decide.join(book, join, ids(), START_MS), { refused: 'MATCHMAKER_LOBBY_CLOSED' })
  assert.deepEqual(decide.seatHeld(book, finder, requestedSeat(), at(START_MS)), { changes: [], result: null })
  assert.deepEqual(decide.seatHeld(book, joiner, requestedSeat(), at(START_MS)), { refused: 'MATCHMAKER_LOBBY_CLOSED' })
  const open = findRequest({ plan: lobbyPlan(), lobby_count_max: 1 })
  assert.deepEqual(decide.find(book, open, ids(), at(START_MS)), { refused: 'MATCHMAKER_TOO_MANY_LOBBIES' })
  for (const { player_id } of [finder, joiner]) dropHolds(book, { player_id })
  const other = grantIn(book, decide.find(book, { ...open, lobby_count_max: 2 }, ids(), at(START_MS)))
  assert.notEqual(other.lobby_id, lobby_id)
  // Its server may come to call before anybody has seen that it is back.
  grantIn(book, decide.connected(book, { player_id, lobby_id, connect_key: null }, START_MS + 1))
  assert.equal(book.lobbies.get(lobby_id)!.players.size, 2)
  assert.equal(book.live_lobby_count, 2)

  grantIn(book, decide.setStalled(book, lobby_id, false, START_MS + 2))
  assert.equal(grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS + 2))).lobby_id, lobby_id)
  grantIn(book, decide.stop(book, lobby_id, 'exited', START_MS + 3))
  assert.deepEqual(decide.setStalled(book, lobby_id, true, START_MS + 4), { changes: [], result: null })
})

test('a lobby that stood ready for players and stalls has its grace to come back, and another takes its place meanwhile', () => {
  const book = new Book()
  const ids = idSource()
  const prepare = (now_ms: number) => {
    const request = { plan: lobbyPlan(), idle_min: 1, lobby_count_max: 3 }
    return grantIn(book, decide.prepare(book, request, ids().lobby_id, at(now_ms)))
  }
  setIdleRules(book, { version_id: VERSION, idle_max: () => 2 })
  assert.ok(prepare(START_MS))
  const [lobby_id] = [...book.lobbies.keys()] as [string]
  grantIn(book, decide.ready(book, lobby_id, START_MS))
  const [stall_ms, grace_ms] = [START_MS + 3_600_000, lobbyPlan().idle_grace_ms]
  assert.ok(!prepare(stall_ms), 'one waits')
  grantIn(book, decide.setStalled(book, lobby_id, true, stall_ms))
  assert.ok(prepare(stall_ms), 'it counts as none that waits')
  assert.deepEqual(expireAll(book, stall_ms + grace_ms - 1), [])
  grantIn(book, decide.setStalled(book, lobby_id, false, stall_ms + grace_ms - 1))
  assert.deepEqual(expireAll(book, stall_ms + 10 * grace_ms), [], 'it is back, and two may stay')
  grantIn(book, decide.setStalled(book, lobby_id, true, stall_ms + 10 * grace_ms))
  assert.equal(expireAll(book, stall_ms + 11 * grace_ms).length, 1)
  assert.equal(book.lobbies.get(lobby_id)!.stop_reason, 'idle')
})

/** What two decisions on one state would make true one after the other: the second follows from what is no longer so. */
function secondBreaks(book: Book, law: RegExp, decide: () => Decision<unknown>): void {
  const changes = [decide(), decide()].map((decision) => ('changes' in decision ? decision.changes : []))
  const [first = [], second = []] = changes
  for (const change of first) apply(book, change)
  const before = stateOf(book)
  const undos: Undo[] = []
  assert.throws(
    () => {
      for (const change of second) undos.push(apply(book, change))
    },
    (error) => error instanceof BrokenLaw && law.test(error.message) && Object.keys(error.facts).length > 0,
  )
  for (const undo of undos.toReversed()) undo()
  assert.deepEqual(stateOf(book), before)
}

test('a change that would break a law is not made: seats, tokens, lobbies of a namespace, players of a client', () => {
  const ids = idSource()
  const small = new Book()
  const { lobby_id } = runningLobby(small, ids, START_MS, {
    plan: { max_players_direct: 2, max_players_normal: 2, max_players_party: 2 },
  })
  secondBreaks(small, /^L1/, () => decide.join(small, { ...requestedSeat(), lobby_id }, ids(), START_MS))

  const book = new Book()
  const seat = runningLobby(book, ids, START_MS)
  secondBreaks(book, /^L2/, () => decide.connected(book, { ...seat, connect_key: null }, START_MS))
  secondBreaks(book, /^L2/, () => decide.disconnected(book, { ...seat, disconnect_key: null }, START_MS))
  const plan = lobbyPlan()
  secondBreaks(book, /^L3/, () =>
    decide.create(book, { ...requestedSeat({ lobby_count_max: 2 }), plan }, ids(), at(START_MS)),
  )
  const client_key = '192.0.2.77'
  secondBreaks(book, /^L4/, () =>
    decide.find(book, findRequest({ client_key, client_players_max: 1 }), ids(), at(START_MS)),
  )
})

test('what the journal says is not held to limits again, which may have been lowered since', () => {
  const ids = idSource()
  const book = new Book()
  const changes = [1, 2, 3].flatMap((limit) => {
    const request = { ...requestedSeat({ lobby_count_max: limit, client_players_max: limit }), plan: lobbyPlan() }
    const decision = decide.create(book, request, ids(), at(START_MS))
    assert.ok('changes' in decision)
    for (const change of decision.changes) apply(book, change)
    return decision.changes
  })
  const read = new Book()
  for (const change of structuredClone(changes)) apply(read, change)
  assert.equal(read.live_lobby_count, 3)
})
