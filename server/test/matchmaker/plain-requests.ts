// What the tests of the book ask for, with everything that does not matter to them filled in.
import assert from 'node:assert'
import type {
  Decision,
  Env,
  FreshIds,
  LobbyPlan,
  RequestedSeat,
  SeatTaken,
  Undo,
} from '../../src/matchmaker/book/commands.ts'
import * as decide from '../../src/matchmaker/book/decide.ts'
import { apply } from '../../src/matchmaker/book/evolve.ts'
import type { LobbyKey, Tags } from '../../src/matchmaker/book/open-lobbies.ts'
import type { Book } from '../../src/matchmaker/book/state.ts'

export const VERSION = '00000000-0000-7000-8000-00000000feed'
export const PLACE: LobbyKey = { version_id: VERSION, region: 'local', game_mode: 'default' }
export const START_MS = 1_800_000_000_000

/** Ids in the order of their numbers, as the ids of the platform are in the order of time. */
export function idOf(number: number): string {
  return `00000000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`
}

/** Fresh ids, each pair another. */
export function idSource(): () => FreshIds {
  let last = 0
  return () => ({ lobby_id: idOf(++last), player_id: idOf(++last) })
}

export function lobbyPlan(changes: Partial<LobbyPlan> = {}): LobbyPlan {
  return {
    ...PLACE,
    publicity: 'public',
    is_custom: false,
    creator_identity_id: null,
    ray_id: null,
    creator_lobbies_max: null,
    tier: 'basic-1d4',
    cpu_cores: 0.25,
    memory_mb: 256,
    edge_ports_wanted: [],
    max_players_normal: 4,
    max_players_direct: 4,
    max_players_party: 4,
    tags: {},
    lobby_config: null,
    ready_within_ms: 300_000,
    player_deadline_ms: 120_000,
    idle_grace_ms: 15_000,
    ...changes,
  }
}

/** The environment of a command at that time: every region has room, and the edge has no ports. */
export function at(now_ms: number): Env {
  return { now_ms, chooseNode: () => ({ node_id: null }), choosePorts: (wanted) => (wanted.length === 0 ? [] : null) }
}

export function requestedSeat(changes: Partial<RequestedSeat> = {}): RequestedSeat {
  return {
    client_key: '192.0.2.1',
    seat_key: null,
    client_players_max: 1_000_000,
    lobby_count_max: 1_000_000,
    identity_id: null,
    is_spectator: false,
    party: null,
    ...changes,
  }
}

type FindRequest = RequestedSeat & { keys: readonly LobbyKey[]; tags: Tags; plan: LobbyPlan | null }

export function findRequest(changes: Partial<FindRequest> = {}): FindRequest {
  return { ...requestedSeat(), keys: [PLACE], tags: [], plan: null, ...changes }
}

/** Makes true what was granted; throws when it was refused. */
export function grantIn<T>(book: Book, decision: Decision<T>): T {
  assert.ok('changes' in decision, `refused: ${JSON.stringify(decision)}`)
  for (const change of decision.changes) apply(book, change)
  return decision.result
}

/** Makes true what time demands until then. */
export function expireAll(book: Book, now_ms: number): Undo[] {
  const undos: Undo[] = []
  for (let change = decide.expire(book, now_ms); change !== null; change = decide.expire(book, now_ms))
    undos.push(apply(book, change))
  return undos
}

/** A running lobby with this many players in it. */
export function runningLobby(
  book: Book,
  ids: () => FreshIds,
  now_ms: number,
  options: { plan?: Partial<LobbyPlan>; players?: number } = {},
): SeatTaken {
  const seat = grantIn(
    book,
    decide.create(book, { ...requestedSeat(), plan: lobbyPlan(options.plan) }, ids(), at(now_ms)),
  )
  grantIn(book, decide.ready(book, seat.lobby_id, now_ms))
  for (let count = 1; count < (options.players ?? 1); count++) {
    grantIn(book, decide.join(book, { ...requestedSeat(), lobby_id: seat.lobby_id }, ids(), now_ms))
  }
  return { ...seat, is_ready: true }
}
