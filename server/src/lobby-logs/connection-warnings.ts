// What a lobby's log, and the explanation of a request for a seat, say of players who lost their seat or their lobby while
// connections were open: most often their server does not call `connected`. Also of connections that an edge has refused,
// because their address has no seat.

/** As the lobby's rows say. */
export type ConnectionFacts = {
  seats_expired_while_connected: number
  stop_reason: string | null
  connections_at_stop: number | null
  /** Connections of addresses without a seat. `refused_client`: the newest of these addresses. */
  refused_count: number
  refused_client: string | null
}

export function connectionWarnings(facts: ConnectionFacts): string[] {
  return [seatsWarning(facts), addressWarning(facts), stopWarning(facts)].filter((warning) => warning !== null)
}

/** Null: no seat has expired so. */
export function seatsWarning({ seats_expired_while_connected: count }: ConnectionFacts): string | null {
  if (count === 0) return null
  const seats = count === 1 ? '1 seat has' : `${count} seats have`
  return `Warning: ${seats} expired while connections to the lobby were open. A seat expires when the server does not call \`connected\` with its player token in time.`
}

/** Null: the lobby runs, or no connection was open. */
export function stopWarning({ stop_reason, connections_at_stop: count }: ConnectionFacts): string | null {
  if (stop_reason === null || count === null) return null
  const connections = count === 1 ? '1 connection to it was' : `${count} connections to it were`
  return `Warning: the lobby was stopped (${stop_reason}) while ${connections} open.`
}

/** Null: no connection was refused so. */
export function addressWarning({ refused_count, refused_client }: ConnectionFacts): string | null {
  if (refused_count === 0 || refused_client === null) return null
  const connections = refused_count === 1 ? '1 connection was' : `${refused_count} connections were`
  return `Warning: ${connections} refused, because the address has no seat in the lobby; the last one came from ${refused_client}. With \`admit_by\` \`address\` a player connects from the address that took the seat.`
}
