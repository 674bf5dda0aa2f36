// Asserts that a book and its plain reference hold the same.
import assert from 'node:assert'
import type { Book } from '../../../src/matchmaker/book/state.ts'
import { dueOf } from '../plain-book/idle.ts'
import { bestToWatch } from '../plain-book/seats.ts'
import { type PlainBook, seatsOf } from '../plain-book/state.ts'
import { VERSION } from '../plain-requests.ts'
import { IDENTITIES, TAGS } from './steps.ts'

export function assertSame(book: Book, reference: PlainBook): void {
  assert.deepEqual([...book.draining], reference.draining)
  assert.equal(book.verified.size(), reference.solvers.length)
  for (const { client, solved, until, requests } of reference.solvers) {
    const expected = { client_key: client, verify_ms: solved, expire_ms: until, request_count: requests }
    assert.deepEqual(book.verified.get(client), expected)
  }
  assert.equal(book.lobbies.size, reference.lobbies.length)
  assert.equal(book.players.size, reference.players.length)
  const due_ms = Math.min(
    assertSameLobbies(book, reference),
    assertSamePlayers(book, reference),
    assertSameParties(book, reference),
  )
  assert.equal(book.nextDueMs(), Number.isFinite(due_ms) ? due_ms : null)
  assertSameToWatch(book, reference)
}

/** The lobby that a spectator would get, in each place and with each tag. */
function assertSameToWatch(book: Book, reference: PlainBook): void {
  for (const game_mode of ['m', 'n']) {
    for (const region of ['r', 's']) {
      for (const tags of TAGS.slice(2, 4)) {
        const keys = [{ version_id: VERSION, region, game_mode }]
        const watched = book.spectating?.choose(keys, Object.entries(tags))
        const expected = bestToWatch(reference, { modes: [game_mode], regions: [region], tags })
        assert.equal(watched?.lobby_id, expected?.id)
      }
    }
  }
}

/** Returns when the first lobby is due. */
function assertSameLobbies(book: Book, reference: PlainBook): number {
  let due_ms = Number.POSITIVE_INFINITY
  for (const expected of reference.lobbies) {
    const lobby = book.lobbies.get(expected.id)!
    const seats = seatsOf(reference, expected.id)
    assert.deepEqual(
      [
        lobby.is_closed,
        lobby.is_stalled,
        lobby.state,
        lobby.ready_ms,
        lobby.stop_ms,
        lobby.stop_reason,
        lobby.players.size,
      ],
      [
        expected.closed,
        expected.stalled,
        expected.state,
        expected.ready,
        expected.stopped,
        expected.reason,
        seats.length,
      ],
    )
    assert.deepEqual([lobby.keep_until_ms, lobby.tags], [expected.kept_until, expected.plan.tags])
    assert.deepEqual(
      [lobby.has_reported_players, lobby.seats_expired_while_connected, lobby.connections_at_stop],
      [expected.has_reported_players, expected.expired_while_connected, expected.connections_at_stop],
    )
    assert.ok(seats.every((player) => lobby.players.has(player.id)))
    const spectators = seatsOf(reference, expected.id, true)
    assert.deepEqual([...lobby.spectators.keys()].sort(), spectators.map(({ id }) => id).sort())
    const holds = reference.holds.filter((hold) => hold.lobby === expected.id)
    const held_spectators = holds.filter(({ request }) => request.spectator).length
    assert.deepEqual([lobby.held_count, lobby.held_spectator_count], [holds.length - held_spectators, held_spectators])
    due_ms = Math.min(due_ms, dueOf(reference, expected))
  }
  return due_ms
}

/** Returns when the first player is due. */
function assertSamePlayers(book: Book, reference: PlainBook): number {
  let due_ms = Number.POSITIVE_INFINITY
  for (const expected of reference.players) {
    const player = book.players.get(expected.id)!
    assert.deepEqual(
      [
        player.identity_id,
        player.is_spectator,
        player.leader_player_id,
        player.lobby_id,
        player.client,
        player.deadline_ms,
        player.connect_ms,
        player.connect_key,
      ],
      [
        expected.identity,
        expected.spectator,
        expected.leader,
        expected.lobby,
        expected.client,
        expected.deadline,
        expected.connected,
        expected.connect_key,
      ],
    )
    assert.deepEqual(
      [player.remove_ms, player.remove_reason, player.disconnect_key],
      [expected.left, expected.reason, expected.leave_key],
    )
    due_ms = Math.min(due_ms, dueOf(reference, expected))
  }
  return due_ms
}

/** Returns when the first party is due. */
function assertSameParties(book: Book, reference: PlainBook): number {
  let due_ms = Number.POSITIVE_INFINITY
  for (const { id, code, leader, members, until } of reference.parties) {
    const party = book.parties.get(id)!
    assert.deepEqual(
      [party.code, party.leader_identity_id, party.expire_ms, party.members.map(({ client }) => client)],
      [code, leader, until, members.map(({ client }) => client)],
    )
    for (const { identity } of members)
      assert.equal(book.parties.ofMember(identity), party, 'an identity is in one party')
    due_ms = Math.min(due_ms, until)
  }
  const members = reference.parties.flatMap((party) => party.members.map(({ identity }) => identity))
  for (const identity of IDENTITIES)
    if (!members.includes(identity)) assert.equal(book.parties.ofMember(identity), undefined)
  return due_ms
}
