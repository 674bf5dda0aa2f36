// The lobbies of a book that nobody is in, arranged by place: how many wait for players there, and which of them is
// stopped next. As many as the place may keep stay for as long as it may; of more, the one whose grace ran out first
// goes. A lobby that is nobody's to find (custom, closed, stalled) is not counted and goes when its grace is over, and one
// of a version that takes no more players at once. A part of the book: no clock, no I/O.
//
// A server that never calls `connected` may have players that the book does not know: its lobby is idle only while the
// edges report no open connection to it, and it ends only by a report. So a report that is missing never ends a lobby.

import { createHeap, type Heap } from './heap.ts'
import type { Lobby } from './lobby.ts'
import type { LobbyKey } from './open-lobbies.ts'
import { isOlder } from './rules.ts'

/** What is wanted of a namespace's lobbies. */
export type IdleRules = {
  /** The version that is deployed: lobbies of all others are outdated. Null: it is not known, and none is. */
  version_id: string | null
  /** How many lobbies may stand idle in a place of that version. */
  idle_max: (place: LobbyKey) => number
}
export const NO_IDLE_RULES: IdleRules = { version_id: null, idle_max: () => 0 }
/** Until the rules of a namespace have been read, none of its lobbies that wait for players is one too many. */
export const UNREAD_IDLE_RULES: IdleRules = { version_id: null, idle_max: () => Number.POSITIVE_INFINITY }

/** The edges' reports are complete whatever the time: nothing waits for them. */
export const ALL_REPORTED_MS = Number.POSITIVE_INFINITY
/** Until the first report of every edge. */
export const NONE_REPORTED_MS = Number.NEGATIVE_INFINITY

/** `due_ms`: when the first lobby of that kind is stopped. */
type Lobbies = { lobbies: Heap<Lobby>; due_ms: number }
/** Lobbies whose server has reported players, and all others. */
type Bench = { place: LobbyKey; is_counted: boolean; reporting: Lobbies; silent: Lobbies }

export type Idle = {
  /** Puts the lobby where it belongs now: to be called after whatever changes its players, its openness or its end. */
  arrange: (lobby: Lobby) => void
  remove: (lobby: Lobby) => void
  /** The lobby that is stopped next for want of players, though perhaps not yet; undefined: none is. */
  first: () => Lobby | undefined
  /** When that is; infinity: never. */
  dueMs: () => number
  /** Lobbies that wait for players in a place. */
  count: (place: LobbyKey) => number
  /** To be called when the rules have changed. */
  refresh: () => void
  /** Every edge has reported which connections were open at this time, or later. */
  setReported: (reported_ms: number) => void
}

/** `mayStay`: how many may stand idle in a place; null: none, not even for the time of its grace. */
export function createIdle(
  mayStay: (place: LobbyKey) => number | null,
  reported_ms_at_first: number = ALL_REPORTED_MS,
): Idle {
  const benches = new Map<string, Bench>()
  const benchOf = new Map<Lobby, Bench>()
  const due = createHeap<Bench>((a, b) => a.reporting.due_ms < b.reporting.due_ms)
  const silent_due = createHeap<Bench>((a, b) => a.silent.due_ms < b.silent.due_ms)
  let reported_ms = reported_ms_at_first

  const sizeOf = ({ reporting, silent }: Bench): number => reporting.lobbies.size() + silent.lobbies.size()

  /** A place that is ending keeps no lobby for its grace. */
  function dueOf(bench: Bench, { lobbies }: Lobbies): number {
    const stay_max = mayStay(bench.place)
    const first = lobbies.peek()
    if (first === undefined) return Number.POSITIVE_INFINITY
    if (stay_max === null) return first.has_reported_players ? 0 : emptySince(first)
    if (bench.is_counted && sizeOf(bench) <= stay_max) return Number.POSITIVE_INFINITY
    return graceEnd(first)
  }

  function arrange(lobby: Lobby): void {
    const before = benchOf.get(lobby)
    if (!isIdle(lobby)) {
      if (before !== undefined) leave(lobby, before)
      return
    }
    const is_counted = isCounted(lobby)
    if (before !== undefined && before.is_counted !== is_counted) leave(lobby, before)
    const key = keyOf(lobby, is_counted)
    let bench = benches.get(key)
    if (bench === undefined) {
      const { version_id, region, game_mode } = lobby
      const newLobbies = (): Lobbies => ({ lobbies: createHeap(isSooner), due_ms: 0 })
      const place = { version_id, region, game_mode }
      bench = { place, is_counted, reporting: newLobbies(), silent: newLobbies() }
      benches.set(key, bench)
    }
    const { reporting, silent } = bench
    const [into, from] = lobby.has_reported_players ? [reporting, silent] : [silent, reporting]
    from.lobbies.remove(lobby)
    into.lobbies.place(lobby)
    benchOf.set(lobby, bench)
    settle(bench)
  }

  function settle(bench: Bench): void {
    bench.reporting.due_ms = dueOf(bench, bench.reporting)
    due.place(bench)
    bench.silent.due_ms = dueOf(bench, bench.silent)
    silent_due.place(bench)
  }

  function leave(lobby: Lobby, bench: Bench): void {
    bench.reporting.lobbies.remove(lobby)
    bench.silent.lobbies.remove(lobby)
    benchOf.delete(lobby)
    if (sizeOf(bench) > 0) {
      settle(bench)
      return
    }
    due.remove(bench)
    silent_due.remove(bench)
    benches.delete(keyOf(bench.place, bench.is_counted))
  }

  /** A lobby whose server reports nobody ends only when a report from after its grace shows no connection. */
  function firstLobbies(): Lobbies | undefined {
    const reporting = due.peek()?.reporting
    const silent = silent_due.peek()?.silent
    if (silent === undefined || silent.due_ms > reported_ms) return reporting
    return reporting === undefined || silent.due_ms < reporting.due_ms ? silent : reporting
  }

  return {
    arrange,
    remove(lobby) {
      const bench = benchOf.get(lobby)
      if (bench !== undefined) leave(lobby, bench)
    },
    first: () => firstLobbies()?.lobbies.peek(),
    dueMs: () => firstLobbies()?.due_ms ?? Number.POSITIVE_INFINITY,
    count(place) {
      const bench = benches.get(keyOf(place, true))
      return bench === undefined ? 0 : sizeOf(bench)
    },
    refresh() {
      // A heap bears one item out of its place, but not all of them.
      for (const bench of benches.values()) {
        due.remove(bench)
        silent_due.remove(bench)
      }
      for (const bench of benches.values()) settle(bench)
    },
    setReported(ms) {
      reported_ms = ms
    },
  }
}

/** While its server reports nobody, an open connection is a player. */
function isIdle(lobby: Lobby): boolean {
  if (lobby.idle_ms === null || lobby.stop_ms !== null) return false
  return lobby.has_reported_players || lobby.connection_count === 0
}

/** Until when an idle lobby has its grace. */
function graceEnd({ idle_ms, quiet_ms, has_reported_players }: Lobby): number {
  return has_reported_players ? idle_ms! : Math.max(idle_ms!, quiet_ms ?? 0)
}

function emptySince(lobby: Lobby): number {
  return graceEnd(lobby) - lobby.idle_grace_ms
}

/** Only what a find may come upon waits for players. */
function isCounted(lobby: Lobby): boolean {
  return !lobby.is_custom && !lobby.is_closed && !lobby.is_stalled && lobby.publicity === 'public'
}

function keyOf({ version_id, region, game_mode }: LobbyKey, is_counted: boolean): string {
  return `${version_id}\n${region}\n${game_mode}\n${is_counted}`
}

function isSooner(a: Lobby, b: Lobby): boolean {
  return graceEnd(a) === graceEnd(b) ? isOlder(a, b) : graceEnd(a) < graceEnd(b)
}
