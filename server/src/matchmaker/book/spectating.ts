// What only spectators need. A book has it once a lobby has seats for spectators. The lobbies that a find of a spectator may get
// are indexed: each lobby key has a heap in which the lobby with most players is first, and a list for each tag.
import { createHeap, type Heap } from './heap.ts'
import type { Lobby } from './lobby.ts'
import { addTags, bestInLists, type LobbyKey, removeTags, type TagLists, type Tags } from './open-lobbies.ts'
import { isBetterToWatch, isWatchable } from './rules.ts'

type WatchableLobbies = TagLists & { by_players: Heap<Lobby>; count: number }

export class Spectating {
  /** Live, reserved and held seats of spectators, by client key. */
  readonly client_spectators = new Map<string, number>()
  readonly #indexes = new Map<string, WatchableLobbies>()
  readonly #lobbies = new Set<Lobby>()

  /** To be called after any change of the lobby's seats or openness. */
  arrange(lobby: Lobby): void {
    if (!isWatchable(lobby)) {
      this.remove(lobby)
      return
    }
    const key = textOf(lobby)
    let index = this.#indexes.get(key)
    if (index === undefined) {
      index = { by_players: createHeap(isBetterToWatch), by_tag: new Map(), count: 0 }
      this.#indexes.set(key, index)
    }
    index.by_players.put(lobby)
    if (this.#lobbies.has(lobby)) return
    this.#lobbies.add(lobby)
    addTags(index, lobby)
    index.count++
  }

  remove(lobby: Lobby): void {
    if (!this.#lobbies.delete(lobby)) return
    const key = textOf(lobby)
    const index = this.#indexes.get(key)!
    index.by_players.remove(lobby)
    removeTags(index, lobby)
    index.count--
    if (index.count === 0) this.#indexes.delete(key)
  }

  /** Whether a lobby of the version may be watched. Examines each lobby key once. */
  hasVersion(version_id: string): boolean {
    for (const key of this.#indexes.keys()) if (key.startsWith(`${version_id}\n`)) return true
    return false
  }

  /** The lobby with most players, over all the keys; among equals, the oldest. Null: none has room. */
  choose(keys: readonly LobbyKey[], tags: Tags): Lobby | null {
    let best: Lobby | null = null
    for (const key of keys) {
      const index = this.#indexes.get(textOf(key))
      if (index === undefined) continue
      const candidate =
        tags.length > 0 ? bestInLists(index, tags, isWatchable, isBetterToWatch) : index.by_players.peek()
      if (candidate && (best === null || isBetterToWatch(candidate, best))) best = candidate
    }
    return best
  }
}

/** Begins it, where the book has none. */
export function spectatingOf(book: { spectating: Spectating | null }): Spectating {
  book.spectating ??= new Spectating()
  return book.spectating
}

function textOf({ version_id, region, game_mode }: LobbyKey): string {
  return `${version_id}\n${region}\n${game_mode}`
}
