// Players of lobbies whose seats the edge checks, as the admission of connections needs them.

/** `is_spectator`: absent or false: a player. */
export type PlayerId = { player_id: string; lobby_id: string; namespace_id: string; is_spectator?: boolean }

/** One connection of an admitted player. `address`: one that no other player of the lobby has; null: none was asked for. */
export type Admitted = PlayerId & { address: string | null; leave: () => void }

/** Who has a seat. The edge asks the book (server/src/edge/presence/players.ts); `muster dev` knows the seats that it passed on. */
export type SeatHolders = {
  /** Returns whose token it is. Throws PLAYER_TOKEN_INVALID for a token that admits nobody to the lobby. */
  playerOf: (token: string | null, lobby_id: string) => PlayerId
  /**
   * Resolves when the player is admitted. `end` ends the connection when the player is removed. `network`: of which the player
   * gets an address; null: of none. Throws the refusal.
   */
  admit: (player: PlayerId, end: () => void, network: string | null) => Promise<Admitted>
}
