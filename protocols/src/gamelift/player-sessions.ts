// Accepts and removes players. A player session is `psess-` and the player's token, which only the player has. The server may
// remove a player by the id that DescribePlayerSessions lists, too.
import type { CallLine } from '../call-line.ts'
import { RequestError } from '../http-body.ts'
import type { LobbySeat, LobbyView, ProtocolLobby } from '../lobby.ts'
import { PLAYER_SESSION_PREFIX } from './game-session.ts'

/** The time in which a call that was accepted shows in the view. */
const VIEW_MS_MAX = 5_000
const NEEDS_TOKEN = `PlayerSessionId must be ${PLAYER_SESSION_PREFIX} and the player token, which the player sends. A player id is not accepted.`
/** Tokens whose player is known. */
const TOKENS_MAX = 4_096

export class PlayerSessions {
  readonly #lobby: ProtocolLobby
  readonly #calls: CallLine
  /** Player ids by token, of players accepted by their token. */
  readonly #players = new Map<string, string>()

  constructor(lobby: ProtocolLobby, calls: CallLine) {
    this.#lobby = lobby
    this.#calls = calls
  }

  accept(session_id: string): Promise<void> {
    const key = keyOf(session_id)
    const before = new Set<string>()
    return this.#change(
      async () => {
        for (const id of this.#connected()) before.add(id)
        // Players see the ids of others, so an id does not prove that a seat is its sender's.
        if (this.#seat(key) !== undefined) throw new RequestError(400, NEEDS_TOKEN)
        await this.#lobby.connected(key)
      },
      async () => {
        await this.#shows(({ seats }) => seats.some((seat) => isNew(seat, before)))
        const come = this.#lobby.view.seats.filter((seat) => isNew(seat, before))
        if (come.length === 1 && come[0] !== undefined) this.#remember(key, come[0].player_id)
      },
    )
  }

  remove(session_id: string): Promise<void> {
    const key = keyOf(session_id)
    return this.#change(
      async () => {
        const seat = this.#seat(key)
        if (seat === undefined) return this.#lobby.disconnected(key)
        if (!seat.is_connected) throw new RequestError(400, 'The player session is not active.')
        await this.#setPlayers([...this.#connected()].filter((id) => id !== key))
      },
      async () => {
        const player_id = this.#players.get(key) ?? key
        this.#players.delete(key)
        await this.#shows(({ seats }) => !seats.some((seat) => seat.player_id === player_id && seat.is_connected))
      },
    )
  }

  /** The id of a player by its player session; null when it is not known. Waits for the calls before it. */
  playerOf(session_id: string): Promise<string | null> {
    const key = keyOf(session_id)
    return this.#calls.run(async () => this.#players.get(key) ?? this.#seat(key)?.player_id ?? null)
  }

  /**
   * Makes the change, and has the next call wait until the view shows it. The list of all connected players is made from the
   * view: one that lags behind would send a player away.
   */
  #change(change: () => Promise<void>, settle: () => Promise<void>): Promise<void> {
    let is_accepted = false
    const changed = this.#calls.run(async () => {
      await change()
      is_accepted = true
    })
    this.#calls.run(async () => (is_accepted ? settle() : undefined)).catch(() => undefined)
    return changed
  }

  async #setPlayers(player_ids: readonly string[]): Promise<void> {
    const { unknown } = await this.#lobby.setPlayers(player_ids)
    if (unknown.length > 0) throw new RequestError(400, 'The player has no seat in this game session.')
  }

  #seat(player_id: string): LobbySeat | undefined {
    return this.#lobby.view.seats.find((seat) => seat.player_id === player_id)
  }

  #connected(): string[] {
    return this.#lobby.view.seats.filter(({ is_connected }) => is_connected).map(({ player_id }) => player_id)
  }

  #remember(token: string, player_id: string): void {
    const oldest = this.#players.size >= TOKENS_MAX ? this.#players.keys().next().value : undefined
    if (oldest !== undefined) this.#players.delete(oldest)
    this.#players.set(token, player_id)
  }

  #shows(condition: (view: LobbyView) => boolean): Promise<void> {
    const lobby = this.#lobby
    if (condition(lobby.view)) return Promise.resolve()
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        forget()
        resolve()
      }
      const timer = setTimeout(end, VIEW_MS_MAX)
      const forget = lobby.onChange(() => {
        if (condition(lobby.view)) end()
      })
    })
  }
}

function isNew({ player_id, is_connected }: LobbySeat, before: ReadonlySet<string>): boolean {
  return is_connected && !before.has(player_id)
}

function keyOf(session_id: string): string {
  const key = session_id.startsWith(PLAYER_SESSION_PREFIX) ? session_id.slice(PLAYER_SESSION_PREFIX.length) : ''
  if (key === '') throw new RequestError(400, `PlayerSessionId is ${PLAYER_SESSION_PREFIX} and the player token.`)
  return key
}
