// The empty lobbies of a book, grouped by lobby key: how many wait for players, and which lobby is stopped next. Up to
// `idle_max` lobbies of a key stay. Beyond that, the lobby whose grace ended first is stopped. A lobby that no find can get
// (custom, closed, stalled) is not counted and is stopped after its grace. A lobby of a version that takes no more players
// is stopped at once.
//
// A server that never calls `connected` may have players that the book does not know. Its lobby is idle only while the edges
// report no open connection to it, and it is stopped only after such a report. So a missing report never stops a lobby.
//
// A server may ask that its lobby is kept. Such a lobby is not counted, and is stopped after its grace and that time.

import { createHeap, type Heap } from './heap.ts'
import type { Lobby } from './lobby.ts'
import type { LobbyKey } from './open-lobbies.ts'
import { isOlder } from './rules.ts'

/** What a namespace's configuration says about empty lobbies. */
export type IdleRules = {
  /** The deployed version: lobbies of others are outdated. Null: it is not known, and no lobby is outdated. */
  version_id: string | null
  /** The version of the roll-out under way, whose lobbies are not outdated either. Absent: none is. */
  rollout_version_id?: string | undefined
  /** How many lobbies of these versions may stand idle under a key. */
  idle_max: (key: LobbyKey) => number
}
export const NO_IDLE_RULES: IdleRules = { version_id: null, idle_max: () => 0 }
/** Until the rules of a namespace have been read, no idle lobby is stopped by their number. */
export const UNREAD_IDLE_RULES: IdleRules = { version_id: null, idle_max: () => Number.POSITIVE_INFINITY }

/** The edges' reports are complete at any time: nothing waits for them. */
export const ALL_REPORTED_MS = Number.POSITIVE_INFINITY
/** Before the first report of every edge. */
export const NONE_REPORTED_MS = Number.NEGATIVE_INFINITY

/** `by_grace`, `by_empty`: the same lobbies by the end and by the begin of their grace. `next`: is stopped at `due_ms`. */
type Lobbies = { by_grace: Heap<Lobby>; by_empty: Heap<Lobby>; next: Lobby | undefined; due_ms: number }
/** `reporting`: lobbies whose server has reported players. `silent`: all others. */
type IdleGroup = { key: LobbyKey; kind: IdleKind; reporting: Lobbies; silent: Lobbies }
/** `counted`: a find can get the lobby. `kept`: its server asked for it. */
type IdleKind = 'counted' | 'uncounted' | 'kept'

export class Idle {
  readonly #mayStay: (key: LobbyKey) => number | null
  readonly #groups = new Map<string, IdleGroup>()
  readonly #group_of = new Map<Lobby, IdleGroup>()
  readonly #due = createHeap<IdleGroup>((a, b) => a.reporting.due_ms < b.reporting.due_ms)
  readonly #silent_due = createHeap<IdleGroup>((a, b) => a.silent.due_ms < b.silent.due_ms)
  #reported_ms: number

  /** `mayStay`: how many may stand idle under a key; null: none, not even for its grace. */
  constructor(mayStay: (key: LobbyKey) => number | null, reported_ms: number = ALL_REPORTED_MS) {
    this.#mayStay = mayStay
    this.#reported_ms = reported_ms
  }

  /** To be called after any change of the lobby's players, openness or end. */
  arrange(lobby: Lobby): void {
    const before = this.#group_of.get(lobby)
    if (!isIdle(lobby)) {
      if (before !== undefined) this.#leave(lobby, before)
      return
    }
    const kind = kindOf(lobby)
    if (before !== undefined && before.kind !== kind) this.#leave(lobby, before)
    const group = this.#groupFor(lobby, kind)
    const { reporting, silent } = group
    const into = lobby.has_reported_players ? reporting : silent
    const from = lobby.has_reported_players ? silent : reporting
    removeFrom(from, lobby)
    into.by_grace.put(lobby)
    into.by_empty.put(lobby)
    this.#group_of.set(lobby, group)
    this.#schedule(group)
  }

  remove(lobby: Lobby): void {
    const group = this.#group_of.get(lobby)
    if (group !== undefined) this.#leave(lobby, group)
  }

  /** The lobby that is stopped next because it is idle, though perhaps not yet. */
  first(): Lobby | undefined {
    return this.#firstLobbies()?.next
  }

  /** When first() is stopped; infinity: never. */
  dueMs(): number {
    return this.#firstLobbies()?.due_ms ?? Number.POSITIVE_INFINITY
  }

  /** Lobbies that wait for players under a key. */
  count(key: LobbyKey): number {
    const group = this.#groups.get(textOf(key, 'counted'))
    return group === undefined ? 0 : sizeOf(group)
  }

  /** A ready lobby of a key without players, which a find can get. */
  emptyLobby(key: LobbyKey): Lobby | undefined {
    const group = this.#groups.get(textOf(key, 'counted'))
    const lobby = group?.reporting.by_empty.peek() ?? group?.silent.by_empty.peek()
    return lobby === undefined || lobby.held_count > 0 || lobby.ready_ms === null ? undefined : lobby
  }

  /** To be called when the rules have changed. */
  refresh(): void {
    // A heap tolerates one item out of its place, but not all of them.
    for (const group of this.#groups.values()) {
      this.#due.remove(group)
      this.#silent_due.remove(group)
    }
    for (const group of this.#groups.values()) this.#schedule(group)
  }

  /** Every edge has reported which connections were open at this time, or later. */
  setReported(reported_ms: number): void {
    this.#reported_ms = reported_ms
  }

  #groupFor(lobby: Lobby, kind: IdleKind): IdleGroup {
    const text = textOf(lobby, kind)
    let group = this.#groups.get(text)
    if (group === undefined) {
      const { version_id, region, game_mode } = lobby
      const newLobbies = (): Lobbies => ({
        ...{ by_grace: createHeap(isSooner), by_empty: createHeap(isEmptyLonger), next: undefined, due_ms: 0 },
      })
      const key = { version_id, region, game_mode }
      group = { key, kind, reporting: newLobbies(), silent: newLobbies() }
      this.#groups.set(text, group)
    }
    return group
  }

  #schedule(group: IdleGroup): void {
    this.#setNext(group, group.reporting)
    this.#due.put(group)
    this.#setNext(group, group.silent)
    this.#silent_due.put(group)
  }

  #setNext(group: IdleGroup, lobbies: Lobbies): void {
    const stay_max = this.#mayStay(group.key)
    const ends_at_once = stay_max === null && group.kind !== 'kept'
    lobbies.next = ends_at_once && lobbies === group.silent ? lobbies.by_empty.peek() : lobbies.by_grace.peek()
    lobbies.due_ms = this.#dueOf(group, lobbies.next, stay_max)
  }

  /** Lobbies of a key that is ending get no grace, but are kept. */
  #dueOf(group: IdleGroup, next: Lobby | undefined, stay_max: number | null): number {
    if (next === undefined) return Number.POSITIVE_INFINITY
    if (group.kind === 'kept') return graceEnd(next)
    if (stay_max === null) return next.has_reported_players ? 0 : emptySince(next)
    if (group.kind === 'counted' && sizeOf(group) <= stay_max) return Number.POSITIVE_INFINITY
    return graceEnd(next)
  }

  #leave(lobby: Lobby, group: IdleGroup): void {
    removeFrom(group.reporting, lobby)
    removeFrom(group.silent, lobby)
    this.#group_of.delete(lobby)
    if (sizeOf(group) > 0) {
      this.#schedule(group)
      return
    }
    this.#due.remove(group)
    this.#silent_due.remove(group)
    this.#groups.delete(textOf(group.key, group.kind))
  }

  /** A silent lobby is stopped only when a report from after its grace shows no connection. */
  #firstLobbies(): Lobbies | undefined {
    const reporting = this.#due.peek()?.reporting
    const silent = this.#silent_due.peek()?.silent
    if (silent === undefined || silent.due_ms > this.#reported_ms) return reporting
    return reporting === undefined || silent.due_ms < reporting.due_ms ? silent : reporting
  }
}

function sizeOf({ reporting, silent }: IdleGroup): number {
  return reporting.by_grace.size() + silent.by_grace.size()
}

function removeFrom({ by_grace, by_empty }: Lobbies, lobby: Lobby): void {
  by_grace.remove(lobby)
  by_empty.remove(lobby)
}

/** While a lobby's server has reported no players, an open connection counts as a player. */
function isIdle(lobby: Lobby): boolean {
  if (lobby.idle_ms === null || lobby.stop_ms !== null) return false
  return lobby.has_reported_players || lobby.connection_count === 0
}

/** The end of an idle lobby's grace, and of the time for which it is kept. */
function graceEnd({ idle_ms, quiet_ms, keep_until_ms, has_reported_players }: Lobby): number {
  return Math.max(idle_ms!, keep_until_ms ?? 0, has_reported_players ? 0 : (quiet_ms ?? 0))
}

function emptySince(lobby: Lobby): number {
  return graceEnd(lobby) - lobby.idle_grace_ms
}

/** Only a lobby that a find can get waits for players. */
function kindOf(lobby: Lobby): IdleKind {
  if (lobby.keep_until_ms !== null) return 'kept'
  const is_found = !lobby.is_custom && !lobby.is_closed && !lobby.is_stalled && lobby.publicity === 'public'
  return is_found ? 'counted' : 'uncounted'
}

function textOf({ version_id, region, game_mode }: LobbyKey, kind: IdleKind): string {
  return `${version_id}\n${region}\n${game_mode}\n${kind}`
}

function isEmptyLonger(a: Lobby, b: Lobby): boolean {
  return emptySince(a) === emptySince(b) ? isOlder(a, b) : emptySince(a) < emptySince(b)
}

function isSooner(a: Lobby, b: Lobby): boolean {
  return graceEnd(a) === graceEnd(b) ? isOlder(a, b) : graceEnd(a) < graceEnd(b)
}
