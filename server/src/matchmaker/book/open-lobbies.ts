// The open lobbies of a book, indexed so that the fullest is found without a scan. Each lobby key (version, region, game
// mode) has a heap ordered by the rules, and a list for each tag that its lobbies carry. For parties the same lobbies are
// also indexed by the number of seats that are free for a party.

import { createHeap, type Heap } from './heap.ts'
import type { Lobby } from './lobby.ts'
import { freePartySeats, hasTags, isBetter, isFindable, isOlder, isOpen } from './rules.ts'
import { createSorted, type Sorted } from './sorted.ts'

/** Lobbies that a find by tags examines: the oldest, so that the result is the same after every load. */
export const TAG_CANDIDATES_MAX = 128

/** What a find asks for, apart from tags. */
export type LobbyKey = { version_id: string; region: string; game_mode: string }
export type Tags = readonly (readonly [string, string])[]

/** More seats than any lobby has. */
const SEATS_MAX = 256

/** The lobbies of one key. */
type KeyIndex = {
  open: Heap<Lobby>
  /** By the number of seats that are free for a party; the oldest first. */
  by_free_party_seats: Map<number, Heap<Lobby>>
  free_party_seats: Map<Lobby, number>
  by_tag: Map<string, Sorted<Lobby>>
}

export type OpenLobbyIndex = {
  /** To be called after any change of the lobby's seats or openness. */
  arrange: (lobby: Lobby) => void
  remove: (lobby: Lobby) => void
  /** Whether a lobby of the version is open. Examines each lobby key once. */
  hasVersion: (version_id: string) => boolean
  /**
   * The lobby that a find gets, over all the keys; null when none is open. `party_size`: the members that need seats; null:
   * a single player.
   */
  choose: (keys: readonly LobbyKey[], tags: Tags, party_size: number | null) => Lobby | null
}

export function createOpenLobbyIndex(): OpenLobbyIndex {
  const indexes = new Map<string, KeyIndex>()

  const textOf = (key: LobbyKey): string => `${key.version_id}\n${key.region}\n${key.game_mode}`

  function arrange(lobby: Lobby): void {
    const is_open = isOpen(lobby)
    const free_seats = isFindable(lobby) ? freePartySeats(lobby) : 0
    if (!is_open && free_seats <= 0) {
      remove(lobby)
      return
    }
    const key = textOf(lobby)
    let index = indexes.get(key)
    if (index === undefined) {
      index = {
        open: createHeap(isBetter),
        by_free_party_seats: new Map(),
        free_party_seats: new Map(),
        by_tag: new Map(),
      }
      indexes.set(key, index)
    }
    if (is_open) index.open.put(lobby)
    else index.open.remove(lobby)
    setFreePartySeats(index, lobby, free_seats)
    addTags(index, lobby)
  }

  function remove(lobby: Lobby): void {
    const key = textOf(lobby)
    const index = indexes.get(key)
    if (index === undefined) return
    index.open.remove(lobby)
    setFreePartySeats(index, lobby, 0)
    removeTags(index, lobby)
    if (index.open.size() === 0 && index.free_party_seats.size === 0) indexes.delete(key)
  }

  function hasVersion(version_id: string): boolean {
    for (const key of indexes.keys()) if (key.startsWith(`${version_id}\n`)) return true
    return false
  }

  function choose(keys: readonly LobbyKey[], tags: Tags, party_size: number | null): Lobby | null {
    const isBest = party_size === null ? isBetter : isBetterForParty
    let best: Lobby | null = null
    for (const key of keys) {
      const index = indexes.get(textOf(key))
      if (index === undefined) continue
      const candidate = tags.length > 0 ? bestWithTags(index, tags, party_size) : bestOf(index, party_size)
      if (candidate && (best === null || isBest(candidate, best))) best = candidate
    }
    return best
  }

  return { arrange, remove, hasVersion, choose }
}

/** The lobby with the fewest free seats for a party; among equals, the oldest. */
function isBetterForParty(a: Lobby, b: Lobby): boolean {
  const difference = freePartySeats(a) - freePartySeats(b)
  return difference === 0 ? isOlder(a, b) : difference < 0
}

function bestOf(index: KeyIndex, party_size: number | null): Lobby | undefined {
  if (party_size === null) return index.open.peek()
  for (let free_seats = party_size; free_seats <= SEATS_MAX; free_seats++) {
    const lobby = index.by_free_party_seats.get(free_seats)?.peek()
    if (lobby !== undefined) return lobby
  }
  return undefined
}

/** A lobby without free seats is not indexed. */
function setFreePartySeats(
  { by_free_party_seats, free_party_seats }: KeyIndex,
  lobby: Lobby,
  free_seats: number,
): void {
  const before = free_party_seats.get(lobby)
  if (before === free_seats) return
  if (before !== undefined) {
    const heap = by_free_party_seats.get(before)
    heap?.remove(lobby)
    if (heap?.size() === 0) by_free_party_seats.delete(before)
    free_party_seats.delete(lobby)
  }
  if (free_seats <= 0) return
  let heap = by_free_party_seats.get(free_seats)
  if (heap === undefined) {
    heap = createHeap(isOlder)
    by_free_party_seats.set(free_seats, heap)
  }
  heap.put(lobby)
  free_party_seats.set(lobby, free_seats)
}

/** The contract refuses NUL in names, so no two pairs share a text. */
const tagText = (name: string, value: string): string => `${name}\0${value}`

/** Lobbies by each of their tags. */
export type TagLists = Pick<KeyIndex, 'by_tag'>

export function addTags({ by_tag }: TagLists, lobby: Lobby): void {
  for (const [name, value] of Object.entries(lobby.tags)) {
    const key = tagText(name, value)
    let lobbies = by_tag.get(key)
    if (lobbies === undefined) {
      lobbies = createSorted(isOlder)
      by_tag.set(key, lobbies)
    }
    lobbies.add(lobby)
  }
}

export function removeTags({ by_tag }: TagLists, lobby: Lobby): void {
  for (const [name, value] of Object.entries(lobby.tags)) {
    const key = tagText(name, value)
    const lobbies = by_tag.get(key)
    lobbies?.remove(lobby)
    if (lobbies?.size() === 0) by_tag.delete(key)
  }
}

/** Searches the list of the rarest tag, which is the shortest list that can hold the lobby. */
function bestWithTags({ by_tag }: TagLists, tags: Tags, party_size: number | null): Lobby | undefined {
  const hasSeats = (lobby: Lobby): boolean =>
    party_size === null ? isOpen(lobby) : freePartySeats(lobby) >= party_size
  return bestInLists({ by_tag }, tags, hasSeats, party_size === null ? isBetter : isBetterForParty)
}

/** The best of the lobbies that have all tags, of the first TAG_CANDIDATES_MAX with the rarest one. */
export function bestInLists(
  { by_tag }: TagLists,
  tags: Tags,
  hasSeats: (lobby: Lobby) => boolean,
  isBest: (a: Lobby, b: Lobby) => boolean,
): Lobby | undefined {
  let rarest: Sorted<Lobby> | undefined
  for (const [name, value] of tags) {
    const lobbies = by_tag.get(tagText(name, value))
    if (lobbies === undefined) return undefined
    if (rarest === undefined || lobbies.size() < rarest.size()) rarest = lobbies
  }
  let best: Lobby | undefined
  for (let position = 0; position < TAG_CANDIDATES_MAX; position++) {
    const lobby = rarest?.at(position)
    if (lobby === undefined) break
    if (hasSeats(lobby) && hasTags(lobby, tags) && (best === undefined || isBest(lobby, best))) best = lobby
  }
  return best
}
