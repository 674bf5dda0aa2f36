// The rows of the five projected tables for a book, and a book loaded from such rows.
import { load } from '../../../src/matchmaker/book/evolve.ts'
import type { Player } from '../../../src/matchmaker/book/lobby.ts'
import type { Book } from '../../../src/matchmaker/book/state.ts'
import { TABLES } from '../../../src/matchmaker/projection/projected-tables.ts'
import { CLIENTS } from './steps.ts'

/** The rows that the projection would write. */
export function rowsOf(book: Book) {
  const { lobbies, players, captcha_clients, parties } = TABLES
  return {
    lobbies: [...book.lobbies.values()].map((lobby) => lobbies.rowOf('namespace', lobby)),
    players: [...book.players.values()].map((player) => players.rowOf('namespace', player)),
    captcha_clients: CLIENTS.flatMap((client) => book.verified.get(client) ?? []).map((verified) =>
      captcha_clients.rowOf('namespace', verified),
    ),
    draining_versions: [...book.draining],
    parties: [...book.parties.all()].map((party) => parties.rowOf('namespace', party)),
  }
}

/** Loads rows into a book, with the types that PostgreSQL returns for them. */
export function loadRows(book: Book, text: string): void {
  const rows = JSON.parse(text) as ReturnType<typeof rowsOf>
  const selected = <T>(row: object): T =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [
        name,
        name.endsWith('_ts') && value !== null ? new Date(value as number) : value,
      ]),
    ) as T
  const lobbies = rows.lobbies.map((row) => TABLES.lobbies.storedOf(selected(row)))
  const players = rows.players.map((row) => TABLES.players.storedOf(selected(row)))
  lobbies.sort((a, b) => a.create_ms - b.create_ms || (a.lobby_id < b.lobby_id ? -1 : 1))
  const left = (player: Player): number => player.remove_ms ?? Number.MAX_SAFE_INTEGER
  players.sort((a, b) => a.create_ms - b.create_ms || left(a) - left(b))
  const parties = rows.parties.filter(({ end_ts }) => end_ts === null)
  load(book, {
    lobbies,
    players,
    captcha_clients: rows.captcha_clients.map((row) => TABLES.captcha_clients.storedOf(selected(row))),
    draining_versions: rows.draining_versions,
    parties: parties.map((row) => TABLES.parties.storedOf(selected(row))),
  })
}
