// The lobbies of a book that nobody is in, arranged by place: how many wait for players there, and which of them is
// stopped next. As many as the place may keep stay for as long as it may; of more, the one whose grace ran out first
// goes. A lobby that is nobody's to find (custom, closed, stalled) is not counted and goes when its grace is over, and one
// of a version that takes no more players at once. A part of the book: no clock, no I/O.

import { createHeap, type Heap } from './heap.ts'
import type { Lobby } from './lobby.ts'
import { isOlder } from './rules.ts'
import type { Place } from './shelves.ts'

/** What is wanted of a namespace's lobbies. */
export type IdleRules = {
  /** The version that is deployed: lobbies of all others are outdated. Null: it is not known, and none is. */
  version_id: string | null
  /** How many lobbies may stand idle in a place of that version. */
  idle_max: (place: Place) => number
}
export const NO_IDLE_RULES: IdleRules = { version_id: null, idle_max: () => 0 }
/** Until the rules of a namespace have been read, none of its lobbies that wait for players is one too many. */
export const UNREAD_IDLE_RULES: IdleRules = { version_id: null, idle_max: () => Number.POSITIVE_INFINITY }

/** `due_ms`: when its first lobby is stopped. */
type Bench = { place: Place; is_counted: boolean; lobbies: Heap<Lobby>; due_ms: number }

export type Idle = {
  /** Puts the lobby where it belongs now: to be called after whatever changes its players, its openness or its end. */
  arrange: (lobby: Lobby) => void
  remove: (lobby: Lobby) => void
  /** The lobby that is stopped next for want of players, though perhaps not yet; undefined: none is. */
  first: () => Lobby | undefined
  /** When that is; infinity: never. */
  dueMs: () => number
  /** Lobbies that wait for players in a place. */
  count: (place: Place) => number
  /** To be called when the rules have changed. */
  refresh: () => void
}

/** `mayStay`: how many may stand idle in a place; null: none, not even for the time of its grace. */
export function createIdle(mayStay: (place: Place) => number | null): Idle {
  const benches = new Map<string, Bench>()
  const benchOf = new Map<Lobby, Bench>()
  const due = createHeap<Bench>((a, b) => a.due_ms < b.due_ms)

  function dueOf({ place, is_counted, lobbies }: Bench): number {
    const stay_max = mayStay(place)
    if (stay_max === null) return 0
    if (is_counted && lobbies.size() <= stay_max) return Number.POSITIVE_INFINITY
    return lobbies.peek()?.idle_ms ?? Number.POSITIVE_INFINITY
  }

  function arrange(lobby: Lobby): void {
    const is_idle = lobby.idle_ms !== null && lobby.stop_ms === null
    const before = benchOf.get(lobby)
    if (!is_idle) {
      if (before !== undefined) leave(lobby, before)
      return
    }
    const is_counted = isCounted(lobby)
    if (before !== undefined && before.is_counted !== is_counted) leave(lobby, before)
    const key = keyOf(lobby, is_counted)
    let bench = benches.get(key)
    if (bench === undefined) {
      const { version_id, region, game_mode } = lobby
      bench = { place: { version_id, region, game_mode }, is_counted, lobbies: createHeap(isSooner), due_ms: 0 }
      benches.set(key, bench)
    }
    bench.lobbies.place(lobby)
    benchOf.set(lobby, bench)
    settle(bench)
  }

  function settle(bench: Bench): void {
    bench.due_ms = dueOf(bench)
    due.place(bench)
  }

  function leave(lobby: Lobby, bench: Bench): void {
    bench.lobbies.remove(lobby)
    benchOf.delete(lobby)
    if (bench.lobbies.size() > 0) {
      settle(bench)
      return
    }
    due.remove(bench)
    benches.delete(keyOf(bench.place, bench.is_counted))
  }

  return {
    arrange,
    remove(lobby) {
      const bench = benchOf.get(lobby)
      if (bench !== undefined) leave(lobby, bench)
    },
    first: () => due.peek()?.lobbies.peek(),
    dueMs: () => due.peek()?.due_ms ?? Number.POSITIVE_INFINITY,
    count: (place) => benches.get(keyOf(place, true))?.lobbies.size() ?? 0,
    refresh() {
      // A heap bears one item out of its place, but not all of them.
      for (const bench of benches.values()) due.remove(bench)
      for (const bench of benches.values()) settle(bench)
    },
  }
}

/** Only what a find may come upon waits for players. */
function isCounted(lobby: Lobby): boolean {
  return !lobby.is_custom && !lobby.is_closed && !lobby.is_stalled && lobby.publicity === 'public'
}

function keyOf({ version_id, region, game_mode }: Place, is_counted: boolean): string {
  return `${version_id}\n${region}\n${game_mode}\n${is_counted}`
}

function isSooner(a: Lobby, b: Lobby): boolean {
  return a.idle_ms === b.idle_ms ? isOlder(a, b) : a.idle_ms! < b.idle_ms!
}
