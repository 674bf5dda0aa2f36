// The open lobbies of a book, arranged so that the fullest is found without a scan: a shelf for each (version, region,
// game mode), ordered by the rules, with a posting list for each tag that its lobbies carry. For parties the same lobbies
// stand in rooms, by how many members there is place for.

import { createHeap, type Heap } from './heap.ts'
import type { Lobby } from './lobby.ts'
import { hasTags, isBetter, isFindable, isOlder, isOpen, partyPlaces } from './rules.ts'
import { createSorted, type Sorted } from './sorted.ts'

/** A find by tags looks at this many lobbies at most: the oldest, so that it is the same after every load. */
export const TAG_CANDIDATES_MAX = 128

export type LobbyKey = { version_id: string; region: string; game_mode: string }
export type Tags = readonly (readonly [string, string])[]

/** More places than any lobby has. */
const PLACES_MAX = 256

type Shelf = {
  open: Heap<Lobby>
  /** By the number of places that are free for a party; the oldest first. */
  rooms: Map<number, Heap<Lobby>>
  room_of: Map<Lobby, number>
  posted: Map<string, Sorted<Lobby>>
}

export type OpenLobbyIndex = {
  /** Puts the lobby where it belongs now: to be called after whatever changes its room or its openness. */
  arrange: (lobby: Lobby) => void
  /** Takes a lobby out that is no more. */
  remove: (lobby: Lobby) => void
  /**
   * The lobby that a find gets, over all the places; null when none is open. `party_size`: as many members as need places;
   * null: one player comes alone.
   */
  choose: (places: readonly LobbyKey[], tags: Tags, party_size: number | null) => Lobby | null
}

export function createOpenLobbyIndex(): OpenLobbyIndex {
  const shelves = new Map<string, Shelf>()

  const shelfOf = (place: LobbyKey): string => `${place.version_id}\n${place.region}\n${place.game_mode}`

  function arrange(lobby: Lobby): void {
    const [is_open, places] = [isOpen(lobby), isFindable(lobby) ? partyPlaces(lobby) : 0]
    if (!is_open && places <= 0) {
      remove(lobby)
      return
    }
    const key = shelfOf(lobby)
    let shelf = shelves.get(key)
    if (shelf === undefined) {
      shelf = { open: createHeap(isBetter), rooms: new Map(), room_of: new Map(), posted: new Map() }
      shelves.set(key, shelf)
    }
    if (is_open) shelf.open.place(lobby)
    else shelf.open.remove(lobby)
    move(shelf, lobby, places)
    post(shelf, lobby)
  }

  function remove(lobby: Lobby): void {
    const key = shelfOf(lobby)
    const shelf = shelves.get(key)
    if (shelf === undefined) return
    shelf.open.remove(lobby)
    move(shelf, lobby, 0)
    unpost(shelf, lobby)
    if (shelf.open.size() === 0 && shelf.room_of.size === 0) shelves.delete(key)
  }

  function choose(places: readonly LobbyKey[], tags: Tags, party_size: number | null): Lobby | null {
    const isBest = party_size === null ? isBetter : isBetterForParty
    let best: Lobby | null = null
    for (const place of places) {
      const shelf = shelves.get(shelfOf(place))
      if (shelf === undefined) continue
      const candidate = tags.length > 0 ? bestWithTags(shelf, tags, party_size) : bestOf(shelf, party_size)
      if (candidate && (best === null || isBest(candidate, best))) best = candidate
    }
    return best
  }

  return { arrange, remove, choose }
}

/** The fewest places that are left for a party, then the oldest. */
function isBetterForParty(a: Lobby, b: Lobby): boolean {
  const difference = partyPlaces(a) - partyPlaces(b)
  return difference === 0 ? isOlder(a, b) : difference < 0
}

function bestOf(shelf: Shelf, party_size: number | null): Lobby | undefined {
  if (party_size === null) return shelf.open.peek()
  for (let places = party_size; places <= PLACES_MAX; places++) {
    const lobby = shelf.rooms.get(places)?.peek()
    if (lobby !== undefined) return lobby
  }
  return undefined
}

/** Into the room of so many free places; none: into no room. */
function move(shelf: Shelf, lobby: Lobby, places: number): void {
  const before = shelf.room_of.get(lobby)
  if (before === places) return
  if (before !== undefined) {
    const room = shelf.rooms.get(before)
    room?.remove(lobby)
    if (room?.size() === 0) shelf.rooms.delete(before)
    shelf.room_of.delete(lobby)
  }
  if (places <= 0) return
  let room = shelf.rooms.get(places)
  if (room === undefined) {
    room = createHeap(isOlder)
    shelf.rooms.set(places, room)
  }
  room.place(lobby)
  shelf.room_of.set(lobby, places)
}

/** Names may not contain it (the contract refuses NUL), so that no two pairs share a key. */
const pair = (name: string, value: string): string => `${name}\0${value}`

function post(shelf: Shelf, lobby: Lobby): void {
  for (const [name, value] of Object.entries(lobby.tags)) {
    const key = pair(name, value)
    let posted = shelf.posted.get(key)
    if (posted === undefined) {
      posted = createSorted(isOlder)
      shelf.posted.set(key, posted)
    }
    posted.add(lobby)
  }
}

function unpost(shelf: Shelf, lobby: Lobby): void {
  for (const [name, value] of Object.entries(lobby.tags)) {
    const key = pair(name, value)
    const posted = shelf.posted.get(key)
    posted?.remove(lobby)
    if (posted?.size() === 0) shelf.posted.delete(key)
  }
}

/** The rarest tag first: its list is the shortest one that can hold the answer. */
function bestWithTags(shelf: Shelf, tags: Tags, party_size: number | null): Lobby | undefined {
  const hasRoom = (lobby: Lobby): boolean => (party_size === null ? isOpen(lobby) : partyPlaces(lobby) >= party_size)
  const isBest = party_size === null ? isBetter : isBetterForParty
  let rarest: Sorted<Lobby> | undefined
  for (const [name, value] of tags) {
    const posted = shelf.posted.get(pair(name, value))
    if (posted === undefined) return undefined
    if (rarest === undefined || posted.size() < rarest.size()) rarest = posted
  }
  let best: Lobby | undefined
  for (let index = 0; index < TAG_CANDIDATES_MAX; index++) {
    const lobby = rarest?.at(index)
    if (lobby === undefined) break
    if (hasRoom(lobby) && hasTags(lobby, tags) && (best === undefined || isBest(lobby, best))) best = lobby
  }
  return best
}
