// Who is here, counted when the operator looks: lobbies and players by namespace, region and game mode. Memory is gone
// through in pieces, so that no find waits for it, and what is told is bounded: of the many small ones only the sum.
import { setImmediate as pause } from 'node:timers/promises'
import type { Tell } from '../../observe/metrics.ts'
import type { Books } from '../shards/books.ts'

/** Places that are told by themselves; those with the most players, then the most lobbies. */
const PLACES_MAX = 200
/** Lobbies and players that are counted at a time. */
const STEP_MAX = 2_000

const LOBBY_STATES = ['starting', 'ready', 'closed', 'stalled'] as const
const PLAYER_STATES = ['reserved', 'connected'] as const

export type Place = {
  namespace_id: string
  region: string
  game_mode: string
  lobbies: Record<(typeof LOBBY_STATES)[number], number>
  players: Record<(typeof PLAYER_STATES)[number], number>
}

const OTHERS = 'other'

export async function takeCensus(books: Pick<Books, 'namespaceIds' | 'book'>): Promise<Place[]> {
  const places = new Map<string, Place>()
  let steps = 0
  for (const namespace_id of books.namespaceIds()) {
    for (const lobby of books.book(namespace_id)?.lobbies.values() ?? []) {
      steps += 1 + lobby.players.size
      if (steps > STEP_MAX) {
        steps = 0
        await pause()
      }
      if (lobby.stop_ms !== null) continue
      const { lobbies, players } = placeOf(places, { namespace_id, ...lobby })
      if (lobby.is_stalled) lobbies.stalled++
      else if (lobby.ready_ms === null) lobbies.starting++
      else if (lobby.is_closed) lobbies.closed++
      else lobbies.ready++
      for (const player of lobby.players.values()) {
        if (player.remove_ms !== null) continue
        if (player.connect_ms === null) players.reserved++
        else players.connected++
      }
    }
  }
  return bounded([...places.values()])
}

export function tellLobbies(places: readonly Place[], tell: Tell): void {
  tellEach(places, tell, ({ lobbies }) => lobbies)
}

export function tellPlayers(places: readonly Place[], tell: Tell): void {
  tellEach(places, tell, ({ players }) => players)
}

function tellEach(places: readonly Place[], tell: Tell, countsOf: (place: Place) => Record<string, number>): void {
  for (const place of places) {
    const { namespace_id, region, game_mode } = place
    for (const [state, count] of Object.entries(countsOf(place))) tell(count, namespace_id, region, game_mode, state)
  }
}

type Where = Pick<Place, 'namespace_id' | 'region' | 'game_mode'>

function placeOf(places: Map<string, Place>, { namespace_id, region, game_mode }: Where): Place {
  const key = `${namespace_id} ${region} ${game_mode}`
  let place = places.get(key)
  if (place === undefined) {
    const nobody = { lobbies: { starting: 0, ready: 0, closed: 0, stalled: 0 }, players: { reserved: 0, connected: 0 } }
    place = { namespace_id, region, game_mode, ...nobody }
    places.set(key, place)
  }
  return place
}

/** Those beyond the bound are added up by region. */
function bounded(places: Place[]): Place[] {
  const size = ({ players, lobbies }: Place): number =>
    (players.reserved + players.connected) * 1_000 + LOBBY_STATES.reduce((sum, state) => sum + lobbies[state], 0)
  places.sort((a, b) => size(b) - size(a))
  const others = new Map<string, Place>()
  for (const { region, lobbies, players } of places.slice(PLACES_MAX)) {
    const sum = placeOf(others, { namespace_id: OTHERS, region, game_mode: OTHERS })
    for (const state of LOBBY_STATES) sum.lobbies[state] += lobbies[state]
    for (const state of PLAYER_STATES) sum.players[state] += players[state]
  }
  return [...places.slice(0, PLACES_MAX), ...others.values()]
}
