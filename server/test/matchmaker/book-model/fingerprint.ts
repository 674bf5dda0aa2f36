// The contents of a book as text, so that two books can be compared.
import * as decide from '../../../src/matchmaker/book/decide.ts'
import type { Book } from '../../../src/matchmaker/book/state.ts'
import { at, VERSION } from '../plain-requests.ts'
import { CLIENTS, IDENTITIES, SEAT_KEYS, TAGS } from './steps.ts'

const NO_IDS = { lobby_id: 'none', player_id: 'none' }

/** Returns everything that can be read from a book, as text. */
export function fingerprint(book: Book, now_ms: number): string {
  const alone = { identity_id: null, is_spectator: false, party: null }
  const request = { client_key: 'x', seat_key: null, client_players_max: 1, lobby_count_max: 0, plan: null, ...alone }
  const chosen = ['m', 'n'].flatMap((game_mode) =>
    ['r', 's'].flatMap((region) =>
      TAGS.map((tags) => {
        const places = [{ version_id: VERSION, region, game_mode }]
        return decide.find(book, { ...request, keys: places, tags: Object.entries(tags) }, NO_IDS, at(now_ms))
      }),
    ),
  )
  const keys = SEAT_KEYS.map((seat_key) =>
    decide.find(book, { ...request, seat_key, keys: [], tags: [] }, NO_IDS, at(now_ms)),
  )
  const clients = CLIENTS.map((client_key) => {
    const isFull = (client_players_max: number) =>
      'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE' ===
      (
        decide.find(book, { ...request, client_key, client_players_max, keys: [], tags: [] }, NO_IDS, at(now_ms)) as {
          refused?: string
        }
      ).refused
    let count = 0
    while (isFull(count + 1)) count++
    return count
  })
  const lobbies = [...book.lobbies.values()].map(({ players, spectators, ...lobby }) => ({
    ...lobby,
    tags: Object.entries(lobby.tags).sort(),
    players: [...players.keys()].sort(),
    spectators: [...spectators.keys()].sort(),
  }))
  const sorted = <T>(records: T[]) =>
    records.map((record) => JSON.stringify(Object.entries(record as object).sort())).sort()
  return JSON.stringify({
    lobbies: sorted(lobbies),
    players: sorted([...book.players.values()]),
    live: book.live_lobby_count,
    draining: [...book.draining],
    parties: sorted([...book.parties.all()]),
    verified: CLIENTS.map((client_key) => book.verified.get(client_key)),
    identity_seats: IDENTITIES.map((identity) =>
      book
        .seatsOf(identity)
        .map(({ player_id }) => player_id)
        .sort(),
    ),
    due: book.nextDueMs(),
    chosen: chosen.map((decision) => ('changes' in decision ? decision.result : decision)),
    listed: ['m', 'n'].map((game_mode) =>
      book
        .list({ version_id: VERSION, game_modes: new Set([game_mode]), after: null })
        .lobbies.map((lobby) => lobby.lobby_id),
    ),
    keys: keys.map((decision) => ('changes' in decision ? decision.result : decision)),
    clients,
    spectators: CLIENTS.map((client_key) => book.clientSeats(client_key, true)),
    watched: ['m', 'n'].flatMap((game_mode) =>
      ['r', 's'].flatMap((region) =>
        TAGS.map((tags) => {
          const place = { version_id: VERSION, region, game_mode }
          return book.spectating?.choose([place], Object.entries(tags))?.lobby_id
        }),
      ),
    ),
  })
}
