// Who is here: connections and sources of datagrams, altogether and by client. When all places are taken, a new client gets
// the place of a connection of the client that holds most, one without a request where there is one: so a few clients
// cannot shut the others out. All this happens while there still are descriptors: with none left, nobody could be answered.
import type { Socket } from 'node:net'
import { clientKey } from '../addresses/client-ip.ts'
import { type ClientPlace, ClientShare } from '../addresses/client-share.ts'
import type { Metrics } from '../observe/metrics.ts'
import { CONNECTIONS_PER_SOURCE_SHARE, connectionsMax } from './limits.ts'

/** What a connection is for. */
export type ConnectionKind = 'http' | 'tcp'

export type ConnectionLimits = {
  connections_max: number
  /** Answers what is to be called once when it leaves; null: there is no room. */
  enter: (address: string) => (() => void) | null
  /** Takes a connection in until it closes; null: there was no room, and it has been cut. */
  admit: (kind: ConnectionKind, socket: Socket, peer?: string) => Guest | null
  tell: (metrics: Metrics) => void
}

/** The peer of a connection over the socket for a proxy on this machine (proxy-socket.ts): it has no address. */
export const PROXY_PEER = 'proxy'

/**
 * `isBusy`: whether the connection serves a request right now. Replaced by who knows. `peer`: the address of the other
 * side, or PROXY_PEER.
 */
export type Guest = { isBusy: () => boolean; readonly peer: string }

type Traffic = { sockets: Set<Socket>; received: number; sent: number }

export function createConnectionLimits(connections_max = connectionsMax()): ConnectionLimits {
  const client_max = Math.ceil(connections_max * CONNECTIONS_PER_SOURCE_SHARE)
  const share = new ClientShare({ places_max: connections_max, client_max })
  const newTraffic = (): Traffic => ({ sockets: new Set(), received: 0, sent: 0 })
  const traffic: Record<ConnectionKind, Traffic> = { http: newTraffic(), tcp: newTraffic() }
  let refused_count = 0

  function enter(address: string, displace: (() => void) | null, isBusy?: () => boolean): ClientPlace | null {
    const place = share.enter(clientKey(address), displace, isBusy)
    if (typeof place === 'object') return place
    refused_count++
    return null
  }

  return {
    connections_max,
    // A source of datagrams can be forged: it takes no connection's place.
    enter: (address) => enter(address, null)?.leave ?? null,
    admit(kind, socket, peer = socket.remoteAddress) {
      const guest: Guest = { isBusy: () => true, peer: peer ?? '' }
      const place =
        peer === undefined
          ? null
          : enter(
              peer,
              () => void socket.destroy(),
              () => guest.isBusy(),
            )
      if (place === null) {
        socket.resetAndDestroy()
        return null
      }
      const of_kind = traffic[kind]
      of_kind.sockets.add(socket)
      socket.once('close', () => {
        place.leave()
        of_kind.sockets.delete(socket)
        of_kind.received += socket.bytesRead
        of_kind.sent += socket.bytesWritten
      })
      return guest
    },
    tell(metrics) {
      const kinds = Object.entries(traffic)
      metrics.gauge('edge_connections', 'Connections to the edge that are open.', ['kind'], (tell) => {
        for (const [kind, { sockets }] of kinds) tell(sockets.size, kind)
      })
      metrics.sum('edge_bytes_total', 'Bytes over connections to the edge.', ['kind', 'direction'], (tell) => {
        for (const [kind, { sockets, received, sent }] of kinds) {
          const open = [...sockets]
          tell(
            open.reduce((bytes, socket) => bytes + socket.bytesRead, received),
            kind,
            'received',
          )
          tell(
            open.reduce((bytes, socket) => bytes + (socket.bytesWritten ?? 0), sent),
            kind,
            'sent',
          )
        }
      })
      metrics.sum('edge_refused_total', 'Connections and sources for which the edge had no room.', [], (tell) =>
        tell(refused_count),
      )
      metrics.sum('edge_displaced_total', 'Connections that were closed to make room for other clients.', [], (tell) =>
        tell(share.displaced_count),
      )
    },
  }
}
