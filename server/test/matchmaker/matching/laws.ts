// What must hold of a book with rules after every step, said again in other words than the matchmaker's own.
import assert from 'node:assert/strict'
import type { Attributes } from '@musterhost/contract'
import type { MatchRules } from '@musterhost/contract/matching'
import type { Change } from '../../../src/journal/changes.ts'
import type { Lobby, Player } from '../../../src/matchmaker/book/lobby.ts'
import type { Book } from '../../../src/matchmaker/book/state.ts'

/** The rules of every model: a number that widens, a text, and two teams. */
export const MODEL = {
  size: { min: 2, max: 6 },
  teams: [
    { name: 'red', min: 1, max: 3 },
    { name: 'blue', min: 1, max: 3 },
  ],
  rules: [
    { near: 'skill', within: 10, widen: { every_s: 2, by: 20, to: 90 } },
    { same: 'map' },
    { even_teams: 1, optional_after_s: 8 },
  ],
  start_after_s: 4,
}

/** Seats in order, parties whole, teams within their sizes, and each client counted as often as it plays or waits. */
export function checkBook(book: Book, rules: MatchRules): void {
  const counts = new Map<string, number>()
  const count = (client: string) => counts.set(client, (counts.get(client) ?? 0) + 1)
  for (const lobby of book.lobbies.values()) {
    if (lobby.stop_ms === null) checkLobby(lobby, rules)
    for (const { client } of lobby.players.values()) count(client)
  }
  for (const ticket of book.matching.all()) {
    for (const { client, player_id } of ticket.players) {
      assert.equal(book.players.has(player_id), false, 'a player who waits has no seat')
      count(client)
    }
  }
  assert.deepEqual(new Map([...book.client_players].sort()), new Map([...counts].sort()))
}

function checkLobby(lobby: Lobby, { players_max, teams }: MatchRules): void {
  const players = [...lobby.players.values()]
  assert.ok(players.length <= players_max, 'no seat is over the size of a match')
  for (const { name, max } of teams) {
    const count = players.filter(({ match }) => match?.team === name).length
    assert.ok(count <= max, `the team ${name} has ${count} players`)
  }
  const by_leader = Map.groupBy(players, ({ leader_player_id }) => leader_player_id)
  for (const [leader, members] of by_leader) {
    if (leader === null) continue
    assert.equal(new Set(members.map(({ match }) => match?.team)).size, 1, 'a party is in one team')
  }
}

/**
 * The rules held for the players of a match when it began: with the limit of the one who had waited least. `waitedMs`: how
 * long each player had waited; null: it sat in the lobby already.
 */
export function checkMatch(players: readonly Player[], waitedMs: (player: Player) => number | null): void {
  const skills = [...Map.groupBy(players, ({ match }) => match!.ticket_id).values()].flatMap((of_ticket) => {
    const values = of_ticket.flatMap(({ match }) => numberOf(match!.attributes) ?? [])
    const waited_ms = waitedMs(of_ticket[0]!)
    return values.length === 0
      ? []
      : [{ skill: values.reduce((sum, value) => sum + value, 0) / values.length, waited_ms }]
  })
  for (const newcomer of skills) {
    if (newcomer.waited_ms === null) continue
    for (const other of skills) {
      const both_ms = Math.min(newcomer.waited_ms, other.waited_ms ?? Number.POSITIVE_INFINITY)
      const limit = Math.min(90, 10 + 20 * Math.floor(both_ms / 2_000))
      const away = Math.abs(newcomer.skill - other.skill)
      assert.ok(away <= limit, `a match has players ${away} apart, at a limit of ${limit}`)
    }
  }
  const maps = new Set(players.flatMap(({ match }) => match!.attributes.map ?? []))
  assert.ok(maps.size <= 1, 'a match has one map')
}

function numberOf({ skill }: Attributes): number | null {
  return typeof skill === 'number' ? skill : null
}

/** Every ticket ends once, and has seats only when it was matched. */
export function checkJournal(changes: readonly Change[]): void {
  const waiting = new Set<string>()
  const seated = new Set<string>()
  for (const change of changes) {
    if (change.kind === 'ticket_put') {
      assert.equal(waiting.has(change.ticket.player_id), false, 'a ticket is put once')
      waiting.add(change.ticket.player_id)
    } else if (change.kind === 'ticket_ended') {
      assert.equal(waiting.delete(change.player_id), true, 'a ticket ends once')
    } else if (change.kind === 'player_reserved') {
      assert.equal(seated.has(change.player.player_id), false, 'a player is in one match')
      seated.add(change.player.player_id)
    }
  }
}
