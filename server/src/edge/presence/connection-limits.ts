// Counts open connections and UDP sources, in total and by client, and limits both. When all slots are taken, a new client
// gets the slot of a connection of the client that holds most, an idle one if possible. So a few clients cannot lock out the
// others. The limits apply while there still are free descriptors: without any, no client could be served.
import type { Socket } from 'node:net'
import { clientKey } from '../../addresses/client-ip.ts'
import { ClientShare, type ClientSlot } from '../../addresses/client-share.ts'
import type { Metrics } from '../../observe/metrics.ts'
import { CONNECTIONS_PER_CLIENT_SHARE, connectionsMax } from '../limits.ts'

export type ConnectionProtocol = 'http' | 'tcp'

/** The peer of a connection over the unix socket (proxy-socket.ts), which has no address. */
export const PROXY_PEER = 'proxy'

/**
 * `isBusy`: whether the connection serves a request right now; set by the code that serves it. `peer`: the address of the
 * other side, or PROXY_PEER. `limits`: which admitted it.
 */
export type AdmittedConnection = { isBusy: () => boolean; readonly peer: string; readonly limits: ConnectionLimits }

class Traffic {
  readonly sockets = new Set<Socket>()
  /** Bytes over connections that are closed. */
  received_bytes = 0
  sent_bytes = 0

  get all_received_bytes(): number {
    return [...this.sockets].reduce((bytes, socket) => bytes + socket.bytesRead, this.received_bytes)
  }

  get all_sent_bytes(): number {
    return [...this.sockets].reduce((bytes, socket) => bytes + (socket.bytesWritten ?? 0), this.sent_bytes)
  }
}

export class ConnectionLimits {
  readonly connections_max: number
  readonly #share: ClientShare
  readonly #traffic: Record<ConnectionProtocol, Traffic> = { http: new Traffic(), tcp: new Traffic() }
  #refused_count = 0

  constructor(connections_max = connectionsMax()) {
    const client_max = Math.ceil(connections_max * CONNECTIONS_PER_CLIENT_SHARE)
    this.connections_max = connections_max
    this.#share = new ClientShare({ slots_max: connections_max, client_max })
  }

  /** Connections and UDP sources. */
  get open_count(): number {
    return this.#share.count
  }

  /**
   * Takes a slot for a source of datagrams. Such a source can be forged, so it never displaces a connection. Returns a
   * function to call once at its end; null: there is no slot.
   */
  enter(address: string): (() => void) | null {
    return this.#take(address, null)?.leave ?? null
  }

  /**
   * Takes a slot for a stream of HTTP/2, so that a client has no more requests under way than over connections of their own.
   * Null: there is no slot.
   */
  enterStream(peer: string, slot: { displace: () => void; isBusy: () => boolean }): ClientSlot | null {
    return this.#take(peer, slot.displace, slot.isBusy)
  }

  /**
   * Admits a connection until it closes. Returns null when there is no slot; the connection has then been reset, or closed
   * in this process only, where another one has it too (`is_shared`).
   */
  admit(
    kind: ConnectionProtocol,
    socket: Socket,
    { peer = socket.remoteAddress, is_shared = false }: { peer?: string | undefined; is_shared?: boolean } = {},
  ): AdmittedConnection | null {
    const admitted: AdmittedConnection = { isBusy: () => true, peer: peer ?? '', limits: this }
    const displace = (): void => void socket.destroy()
    const slot = peer === undefined ? null : this.#take(peer, displace, () => admitted.isBusy())
    if (slot === null) {
      if (is_shared) socket.destroy()
      else socket.resetAndDestroy()
      return null
    }
    const traffic = this.#traffic[kind]
    traffic.sockets.add(socket)
    socket.once('close', () => {
      slot.leave()
      traffic.sockets.delete(socket)
      traffic.received_bytes += socket.bytesRead
      traffic.sent_bytes += socket.bytesWritten
    })
    return admitted
  }

  registerMetrics(metrics: Metrics): void {
    const kinds = Object.entries(this.#traffic)
    metrics.gauge('edge_connections', 'Open connections to the edge.', ['kind'], (report) => {
      for (const [kind, { sockets }] of kinds) report(sockets.size, kind)
    })
    metrics.sum('edge_bytes_total', 'Bytes over connections to the edge.', ['kind', 'direction'], (report) => {
      for (const [kind, traffic] of kinds) {
        report(traffic.all_received_bytes, kind, 'received')
        report(traffic.all_sent_bytes, kind, 'sent')
      }
    })
    const refused_help = 'Connections and UDP sources refused because all slots were taken.'
    metrics.sum('edge_refused_total', refused_help, [], (report) => report(this.#refused_count))
    const displaced_help = 'Connections closed to make room for other clients.'
    metrics.sum('edge_displaced_total', displaced_help, [], (report) => report(this.#share.displaced_count))
  }

  #take(address: string, displace: (() => void) | null, isBusy?: () => boolean): ClientSlot | null {
    const slot = this.#share.enter(clientKey(address), displace, isBusy)
    if (typeof slot === 'object') return slot
    this.#refused_count++
    return null
  }
}
