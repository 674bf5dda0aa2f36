// Who is here: connections and sources of datagrams, altogether and by client, so that one client cannot shut the others
// out, and everybody is refused while there still are descriptors: with none left, nobody could be answered.
import type { Socket } from 'node:net'
import { clientBucket } from '../net/client-ip.ts'
import type { Metrics } from '../observe/metrics.ts'
import { CONNECTIONS_PER_SOURCE_SHARE, connectionsMax } from './limits.ts'

/** What a connection is for. */
export type ConnectionKind = 'http' | 'tcp'

export type Crowd = {
  connections_max: number
  /** Answers what is to be called once when it leaves; null: there is no room. */
  enter: (address: string) => (() => void) | null
  /** Takes a connection in until it closes; false: there was no room, and it has been cut. */
  admit: (kind: ConnectionKind, socket: Socket) => boolean
  tell: (metrics: Metrics) => void
}

type Traffic = { sockets: Set<Socket>; received: number; sent: number }

export function createCrowd(connections_max = connectionsMax()): Crowd {
  const per_source_max = Math.ceil(connections_max * CONNECTIONS_PER_SOURCE_SHARE)
  const counts = new Map<string, number>()
  const newTraffic = (): Traffic => ({ sockets: new Set(), received: 0, sent: 0 })
  const traffic: Record<ConnectionKind, Traffic> = { http: newTraffic(), tcp: newTraffic() }
  let sum = 0
  let refused_count = 0

  function enter(address: string): (() => void) | null {
    const source = clientBucket(address)
    const count = counts.get(source) ?? 0
    if (sum >= connections_max || count >= per_source_max) {
      refused_count++
      return null
    }
    sum++
    counts.set(source, count + 1)
    return () => {
      sum--
      const left = (counts.get(source) ?? 1) - 1
      if (left === 0) counts.delete(source)
      else counts.set(source, left)
    }
  }

  return {
    connections_max,
    enter,
    admit(kind, socket) {
      const leave = socket.remoteAddress === undefined ? null : enter(socket.remoteAddress)
      if (leave === null) {
        socket.resetAndDestroy()
        return false
      }
      const of_kind = traffic[kind]
      of_kind.sockets.add(socket)
      socket.once('close', () => {
        leave()
        of_kind.sockets.delete(socket)
        of_kind.received += socket.bytesRead
        of_kind.sent += socket.bytesWritten
      })
      return true
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
    },
  }
}
