// Proxies in front of an edge that the operator has not named. All their players have the address of the proxy, and share the
// limits of one client. Such a proxy shows itself: requests from one address name several clients in X-Forwarded-For. That
// header is not believed here: a client can write it too, so a proxy is reported and never trusted.
import type pg from 'pg'
import { BoundedMap } from '../flow/bounded-map.ts'
import { canonicalAddress } from './client-ip.ts'

/** Clients that one address must name before it counts as a proxy. */
const CLIENTS_MIN = 3
/** Addresses that are watched at once. The oldest is forgotten first. */
const PEERS_MAX = 64
/** Within this time the clients must be named, and an address is reported once. */
const WINDOW_MS = 10 * 60_000
/** A proxy is shown to administrators for so long after it was seen. */
const SHOWN = '1 hour'
/** Proxies that are shown at once. */
const SHOWN_MAX = 8

export class UnnamedProxies {
  readonly #report: (address: string) => void
  readonly #elapsed: () => number
  #window_start_ms = Number.NEGATIVE_INFINITY
  readonly #clients = new BoundedMap<string, Set<string>>(PEERS_MAX)

  /** `report` is called with the address of a proxy, at most once in ten minutes for each. `elapsed`: milliseconds. */
  constructor(elapsed: () => number, report: (address: string) => void) {
    this.#elapsed = elapsed
    this.#report = report
  }

  /** For a request from `peer` whose X-Forwarded-For was ignored. */
  note(peer: string, forwarded_for: string): void {
    const client = canonicalAddress(forwarded_for.slice(forwarded_for.lastIndexOf(',') + 1).trim())
    if (client === null) return
    const now_ms = this.#elapsed()
    if (now_ms - this.#window_start_ms >= WINDOW_MS) {
      this.#clients.clear()
      this.#window_start_ms = now_ms
    }
    const clients = this.#clients.getOr(peer, () => new Set())
    if (clients.size >= CLIENTS_MIN) return
    clients.add(client)
    if (clients.size === CLIENTS_MIN) this.#report(peer)
  }
}

export function unnamedProxySentence(address: string): string {
  return `Requests from ${address} name several clients in X-Forwarded-For, which is not believed: they count as one client. If it is a proxy of yours, name it in MUSTER_TRUSTED_PROXIES, or let it use MUSTER_EDGE_SOCKET where it runs on the edge's machine.`
}

/** Reads the proxies that an edge saw within the last hour, by the database's clock. */
export async function unnamedProxies(pool: Pick<pg.Pool, 'query'>): Promise<{ address: string; ts: Date }[]> {
  const { rows } = await pool.query<{ address: string; ts: Date }>(
    `select unnamed_proxy as address, max(unnamed_proxy_ts) as ts from edges
      where unnamed_proxy_ts > now() - interval '${SHOWN}' group by unnamed_proxy order by ts desc limit ${SHOWN_MAX}`,
  )
  return rows
}
