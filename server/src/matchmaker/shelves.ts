// The open lobbies of a book, arranged so that the fullest is found without a scan: a shelf for each (version, region,
// game mode), ordered by the rules, with a posting list for each tag that its lobbies carry.
import type { Lobby } from './changes.ts'
import { createHeap, type Heap } from './heap.ts'
import { hasTags, isBetter, isOlder, isOpen } from './rules.ts'
import { createSorted, type Sorted } from './sorted.ts'

/** A find by tags looks at this many lobbies at most: the oldest, so that it is the same after every load. */
export const TAG_CANDIDATES_MAX = 128

export type Place = { version_id: string; region: string; game_mode: string }
export type Tags = readonly (readonly [string, string])[]

type Shelf = { open: Heap<Lobby>; posted: Map<string, Sorted<Lobby>> }

export type Shelves = {
  /** Puts the lobby where it belongs now: to be called after whatever changes its room or its openness. */
  arrange: (lobby: Lobby) => void
  /** Takes a lobby out that is no more. */
  remove: (lobby: Lobby) => void
  /** The lobby that a find gets, over all the places; null when none is open. */
  choose: (places: readonly Place[], tags: Tags) => Lobby | null
}

export function createShelves(): Shelves {
  const shelves = new Map<string, Shelf>()

  const shelfOf = (place: Place): string => `${place.version_id}\n${place.region}\n${place.game_mode}`

  function arrange(lobby: Lobby): void {
    if (!isOpen(lobby)) {
      remove(lobby)
      return
    }
    const key = shelfOf(lobby)
    let shelf = shelves.get(key)
    if (shelf === undefined) {
      shelf = { open: createHeap(isBetter), posted: new Map() }
      shelves.set(key, shelf)
    }
    shelf.open.place(lobby)
    post(shelf, lobby)
  }

  function remove(lobby: Lobby): void {
    const key = shelfOf(lobby)
    const shelf = shelves.get(key)
    if (shelf === undefined) return
    shelf.open.remove(lobby)
    unpost(shelf, lobby)
    if (shelf.open.size() === 0) shelves.delete(key)
  }

  function choose(places: readonly Place[], tags: Tags): Lobby | null {
    let best: Lobby | null = null
    for (const place of places) {
      const shelf = shelves.get(shelfOf(place))
      if (shelf === undefined) continue
      const candidate = tags.length === 0 ? shelf.open.peek() : bestWithTags(shelf, tags)
      if (candidate && (best === null || isBetter(candidate, best))) best = candidate
    }
    return best
  }

  return { arrange, remove, choose }
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
function bestWithTags(shelf: Shelf, tags: Tags): Lobby | undefined {
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
    if (hasTags(lobby, tags) && (best === undefined || isBetter(lobby, best))) best = lobby
  }
  return best
}
