// Random lives of a queue: players and parties come, wait, hang up, come again, leave, and the book is undone or read again at any
// time. After every step the laws of laws.ts hold.
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Change } from '../../../src/journal/changes.ts'
import * as decide from '../../../src/matchmaker/book/decide.ts'
import { apply } from '../../../src/matchmaker/book/evolve.ts'
import type { Player } from '../../../src/matchmaker/book/lobby.ts'
import { Book } from '../../../src/matchmaker/book/state.ts'
import { idOf } from '../plain-requests.ts'
import { checkBook, checkJournal, checkMatch, MODEL } from './laws.ts'
import { type Asked, QueueWorld } from './queue-world.ts'

const KINDS = ['find', 'find', 'find', 'pass', 'again', 'hang_up', 'leave', 'close', 'party', 'undo'] as const
/** A kind and two numbers that choose who it concerns and how. */
const step = fc.tuple(fc.nat(KINDS.length - 1), fc.nat(999), fc.nat(999))
export const queueLife = fc.array(step, { minLength: 1, maxLength: 40 })
type Life = readonly (readonly [number, number, number])[]

export function live(life: Life): void {
  const world = new QueueWorld(MODEL)
  const asked: Asked[] = []
  world.onCommand = (changes) => checkNewMatches(world, changes)
  for (const [index, [kind, a, b]] of life.entries()) {
    take(world, asked, KINDS[kind]!, a, b, index)
    checkBook(world.book, world.rules)
  }
  checkJournal(world.changes)
  checkReplay(world)
}

function take(world: QueueWorld, asked: Asked[], kind: (typeof KINDS)[number], a: number, b: number, index: number) {
  const chosen = asked[a % Math.max(1, asked.length)]
  const attributes = { ...(a % 7 > 0 && { skill: a % 100 }), ...(b % 5 > 0 && { map: b % 2 === 0 ? 'bay' : 'dunes' }) }
  switch (kind) {
    case 'find': {
      const key = b % 2 === 0 ? `k${index}` : null
      return void asked.push(world.find({ attributes, key, client_key: `192.0.2.${a % 3}` }).asked)
    }
    case 'pass':
      return world.pass(a * 10)
    case 'again': {
      if (chosen?.key == null) return
      world.return(chosen)
      if (b % 2 === 0) world.settle()
      return void asked.push(world.find({ attributes, key: chosen.key }).asked)
    }
    case 'hang_up':
      return chosen && world.hangUp(chosen)
    case 'leave': {
      const lobby_id = chosen && world.lobbyOf(chosen)
      if (lobby_id == null) return
      world.decide(decide.expel(world.book, { player_id: chosen!.id, lobby_id }, world.now_ms))
      return world.settle()
    }
    case 'close': {
      const lobby_id = chosen && world.lobbyOf(chosen)
      if (lobby_id == null || world.book.lobby(lobby_id).stop_ms !== null) return
      world.decide(decide.setClosed(world.book, lobby_id, b % 2 === 0))
      return world.settle()
    }
    case 'party':
      return void asked.push(findAsParty(world, attributes, 2 + (b % 2), index))
    case 'undo':
      return undoFind(world, attributes)
  }
}

function findAsParty(world: QueueWorld, attributes: object, size: number, index: number): Asked {
  const address = '192.0.2.9'
  const code = `C${index}`
  const identities = Array.from({ length: size }, (_, member) => idOf(1_000_000 + index * 10 + member))
  for (const [member, identity_id] of identities.entries()) {
    const record = { identity_id, address, client: address, user_agent: null, join_ms: world.now_ms }
    if (member === 0) world.decide(world.book.parties.create(record, { party_id: idOf(2_000_000 + index), code }))
    else world.decide(world.book.parties.join(record, code))
  }
  return world.find({ attributes: { ...attributes }, identity_id: identities[0]!, has_party: true }).asked
}

/** A find that could not be written: the book is what it was. */
function undoFind(world: QueueWorld, attributes: object): void {
  const undo_count = world.undos.length
  const change_count = world.changes.length
  const before = pictureOf(world.book)
  const { asked } = world.find({ attributes: { ...attributes } })
  for (const undo of world.undos.splice(undo_count).toReversed()) undo()
  world.changes.length = change_count
  world.hangUp(asked)
  assert.deepEqual(pictureOf(world.book), before)
  world.settle()
}

/** Checks of each lobby that got players whether the rules admitted them. */
function checkNewMatches(world: QueueWorld, changes: readonly Change[]): void {
  const since_ms = new Map<string, number>()
  for (const change of world.changes) {
    if (change.kind === 'ticket_put') since_ms.set(change.ticket.player_id, change.ticket.create_ms)
  }
  const come = changes.flatMap((change) => (change.kind === 'player_reserved' ? [change.player] : []))
  for (const [lobby_id, newcomers] of Map.groupBy(come, (player) => player.lobby_id)) {
    const players = [...(world.book.lobbies.get(lobby_id)?.players.values() ?? [])]
    const ids = new Set(newcomers.map(({ player_id }) => player_id))
    // A player who came and found a seat at once waited for no time.
    const waitedMs = ({ player_id, create_ms, match }: Player) =>
      ids.has(player_id) ? create_ms - (since_ms.get(match!.ticket_id) ?? create_ms) : null
    checkMatch(players, waitedMs)
  }
}

/** The journal alone makes the same book. */
function checkReplay(world: QueueWorld): void {
  const book = new Book()
  for (const change of JSON.parse(JSON.stringify(world.changes)) as Change[]) apply(book, change)
  assert.deepEqual(pictureOf(book), pictureOf(world.book))
}

function pictureOf(book: Book): unknown {
  return {
    tickets: [...book.matching.all()]
      .map(({ player_id, create_ms, players }) => ({ player_id, create_ms, players }))
      .sort(byId),
    players: [...book.players.values()]
      .map(({ player_id, lobby_id, match, remove_ms }) => {
        return { player_id, lobby_id, match: match ?? null, remove_ms }
      })
      .sort(byId),
    clients: [...book.client_players].sort(),
    lobbies: [...book.lobbies.values()].map(({ lobby_id, stop_ms, is_closed }) => ({ lobby_id, stop_ms, is_closed })),
  }
}

function byId(a: { player_id: string }, b: { player_id: string }): number {
  return a.player_id < b.player_id ? -1 : 1
}
