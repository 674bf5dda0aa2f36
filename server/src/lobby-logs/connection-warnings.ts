// What a lobby's log, and the explanation of a request for a seat, say of players who lost their seat or their lobby while
// connections were open: most often their server does not call `connected`.

/** As the lobby's row says. */
export type ConnectionFacts = {
  seats_expired_while_connected: number
  stop_reason: string | null
  connections_at_stop: number | null
}

export function connectionWarnings(facts: ConnectionFacts): string[] {
  return [seatsWarning(facts), stopWarning(facts)].filter((warning) => warning !== null)
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
