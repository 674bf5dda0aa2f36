// The lobbies of a book that may be listed: for each version and game mode, oldest first. So the cost of a page does not
// depend on how many lobbies there are. An empty lobby is listed only while it is the only lobby of its game mode.
import type { Lobby } from './lobby.ts'
import { isOlder } from './rules.ts'
import { createSorted, type Sorted } from './sorted.ts'

export type ListQuery = {
  version_id: string
  game_modes: ReadonlySet<string>
  after: Lobby | null
  lobbies_max: number
}

type Lists = { all: Sorted<Lobby>; occupied: Sorted<Lobby> }

export type Listing = {
  /** To be called when a lobby was added, has stopped, got its first player or lost its last. */
  arrange: (lobby: Lobby) => void
  remove: (lobby: Lobby) => void
  /** The lobbies after `after`, oldest first, and whether there are more. */
  page: (query: ListQuery) => { lobbies: Lobby[]; more: boolean }
}

export function createListing(): Listing {
  const modes = new Map<string, Lists>()

  const keyOf = (version_id: string, game_mode: string): string => `${version_id}\n${game_mode}`

  function arrange(lobby: Lobby): void {
    if (lobby.stop_ms !== null || lobby.publicity !== 'public') {
      remove(lobby)
      return
    }
    const key = keyOf(lobby.version_id, lobby.game_mode)
    let lists = modes.get(key)
    if (lists === undefined) {
      lists = { all: createSorted(isOlder), occupied: createSorted(isOlder) }
      modes.set(key, lists)
    }
    lists.all.add(lobby)
    if (lobby.players.size > 0) lists.occupied.add(lobby)
    else lists.occupied.remove(lobby)
  }

  function remove(lobby: Lobby): void {
    const key = keyOf(lobby.version_id, lobby.game_mode)
    const lists = modes.get(key)
    lists?.all.remove(lobby)
    lists?.occupied.remove(lobby)
    if (lists?.all.size() === 0) modes.delete(key)
  }

  function page({ version_id, game_modes, after, lobbies_max }: ListQuery): { lobbies: Lobby[]; more: boolean } {
    const cursors = [...game_modes]
      .flatMap((game_mode) => modes.get(keyOf(version_id, game_mode)) ?? [])
      .map(({ all, occupied }) => (all.size() === 1 ? all : occupied))
      .map((list) => ({ list, index: after === null ? 0 : positionAfter(list, after) }))
    const lobbies: Lobby[] = []
    for (;;) {
      let oldest: { cursor: (typeof cursors)[number]; lobby: Lobby } | null = null
      for (const cursor of cursors) {
        const lobby = cursor.list.at(cursor.index)
        if (lobby && (oldest === null || isOlder(lobby, oldest.lobby))) oldest = { cursor, lobby }
      }
      if (oldest === null) return { lobbies, more: false }
      if (lobbies.length === lobbies_max) return { lobbies, more: true }
      lobbies.push(oldest.lobby)
      oldest.cursor.index++
    }
  }

  return { arrange, remove, page }
}

/** The lobby that a page ended with may have left the list meanwhile. */
function positionAfter(list: Sorted<Lobby>, after: Lobby): number {
  const index = list.indexOf(after)
  return list.at(index) === after ? index + 1 : index
}
