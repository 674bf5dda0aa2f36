// Places that are held during verification.
import assert from 'node:assert'
import type { HoldRequest, RequestedSeat } from '../../../src/matchmaker/book/commands.ts'
import * as decide from '../../../src/matchmaker/book/decide.ts'
import { dropHolds } from '../../../src/matchmaker/book/evolve.ts'
import * as plain from '../plain-book/holds.ts'
import type { PlainBook, PlainHold } from '../plain-book/state.ts'
import { at } from '../plain-requests.ts'
import { type Command, type CommandInput, type Comparison, drawLobby } from './draw.ts'
import { drawFind } from './seat-commands.ts'
import { CLIENT_PLAYERS_MAX, pick, planOf } from './steps.ts'

export const HOLD_COMMANDS = {
  hold,

  seat_held({ book, reference, request, plain_request, choice, now_ms }) {
    const found = pick([...reference.holds, undefined], choice)
    const asked = found === undefined ? plain_request : found.request
    const entrant: RequestedSeat = {
      ...request,
      client_key: asked.client,
      seat_key: found === undefined ? null : asked.key,
      identity_id: asked.identity,
      is_spectator: asked.spectator,
      party: asked.with_party ? { playersMaxOf: () => CLIENT_PLAYERS_MAX } : null,
    }
    const { client_max, lobby_max } = plain_request
    const plain_entrant = { ...asked, client_max, lobby_max, key: entrant.seat_key }
    const { player, members } = heldIds(reference, found)
    return {
      decision: decide.seatHeld(book, { player_id: player, member_ids: members }, entrant, at(now_ms)),
      expected: plain.seatHeld(reference, { player, members }, plain_entrant, now_ms),
    }
  },

  drop_hold({ book, reference, choice }) {
    const { player, members } = heldIds(reference, pick([...reference.holds, undefined], choice))
    dropHolds(book, { player_id: player, member_ids: members })
    plain.releaseHold(reference, { player, members })
    return null
  },
} satisfies Record<string, Command>

/** The request may also take a seat at once, or be refused: then that is compared. A hold has no change to compare. */
function hold(input: CommandInput): Comparison | null {
  const { book, reference, ids, plain_ids, now_ms } = input
  const { asked, plain_asked } = drawHold(input)
  const decision = decide.hold(book, asked, ids, at(now_ms))
  const expected = plain.hold(reference, plain_asked, plain_ids, now_ms)
  if ('refused' in decision || 'seat' in decision.result) {
    assert.ok(expected === null || !('held' in expected), 'no hold was expected')
    if ('refused' in decision) return { decision, expected }
    const { changes, result } = decision
    return { decision: { changes, result: (result as Extract<typeof result, { seat: unknown }>).seat }, expected }
  }
  const held = decision.result.hold
  assert.deepEqual(decision.changes, [], 'a hold is in no journal')
  assert.deepEqual({ held: held.lobby.lobby_id }, expected)
  assert.equal(held.plan !== null, !book.lobbies.has(held.lobby.lobby_id))
  return null
}

function drawHold(input: CommandInput): { asked: HoldRequest; plain_asked: plain.PlainAsked } {
  const { reference, request, plain_request, actor } = input
  const action = pick(['find', 'find', 'find', 'join', 'create'] as const, input.choice)
  const choice = input.choice >> 3
  if (action === 'join') {
    const lobby = drawLobby(reference, actor)
    return {
      asked: { action, request: { ...request, lobby_id: lobby } },
      plain_asked: { action, request: { ...plain_request, lobby } },
    }
  }
  if (action === 'create') {
    const plan = { ...planOf(choice), is_custom: true }
    return {
      asked: { action, request: { ...request, is_spectator: false, plan } },
      plain_asked: { action, request: { ...plain_request, spectator: false, plan } },
    }
  }
  const verified = new Set(pick([['m', 'n'], ['m', 'n'], ['m']], actor >> 4))
  const drawn = drawFind(request, plain_request, choice, planOf(choice))
  return {
    asked: { action, request: drawn.request, verified_modes: verified },
    plain_asked: { action, request: drawn.plain_request, verified },
  }
}

/** Returns the players of a hold: the requester, and the other members of the party. */
function heldIds(reference: PlainBook, found: PlainHold | undefined) {
  if (found === undefined) return { player: 'nobody', members: [] }
  const party = reference.holds.filter(({ request }) => request === found.request).map(({ player }) => player)
  return { player: party[0]!, members: party.slice(1) }
}
