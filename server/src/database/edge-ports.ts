// What edge and matchmaker agree on about the edge's tcp and udp ports.

/** How long a port stays unused after its lobby has ended, so that late packets of its players reach no other lobby. */
export const PORT_QUARANTINE_MS = 60_000
