// The way of one UDP source to its lobby: a socket on this machine, or a stream of datagrams over the link of a joined node.
import { createSocket, type Socket } from 'node:dgram'
import type { DatagramChannel } from '../../links/datagrams.ts'
import type { LobbyPaths, NodePort } from '../../links/platform/lobby-paths.ts'
import type { StreamAddress } from '../routes/routes.ts'
import { lookupNothing } from './udp-socket.ts'

export type UdpUpstream = {
  /** Null: over a link. */
  readonly socket: Socket | null
  /** The port that the link leads to; null: not over a link. */
  readonly node_port: NodePort | null
  /** Called once. `onOpen`: from then on datagrams may be sent. */
  open: (on: { onOpen: () => void; onDatagram: (datagram: Buffer) => void }) => void
  /** Parts of one datagram. */
  send: (...parts: readonly Buffer[]) => void
  close: () => void
}

/** `local_address`: that the lobby sees; null: any. A joined node does not know it. */
export function openUpstream(
  { hostname, port, elsewhere }: StreamAddress,
  local_address: string | null,
  paths: Pick<LobbyPaths, 'datagrams'>,
): UdpUpstream {
  if (elsewhere !== undefined) return openOverLink(elsewhere, paths)
  const socket = createSocket({ type: 'udp4', lookup: lookupNothing })
  // ECONNREFUSED, reported by ICMP: the server does not listen now. This says nothing about the next datagram.
  socket.on('error', ignore)
  return {
    ...overSocket(socket),
    open({ onOpen, onDatagram }) {
      socket.on('message', onDatagram)
      const connect = (): void => socket.connect(port, hostname, onOpen)
      if (local_address !== null) socket.bind({ address: local_address }, connect)
      else connect()
    },
  }
}

/** The same as a channel, for the edge of another node. */
export function openUpstreamChannel(address: StreamAddress, paths: Pick<LobbyPaths, 'datagrams'>): DatagramChannel {
  const upstream = openUpstream(address, null, paths)
  const opened = Promise.withResolvers<void>()
  let receive: (datagram: Buffer) => void = ignore
  let onClosed: () => void = ignore
  let is_closed = false
  upstream.open({ onOpen: () => opened.resolve(), onDatagram: (datagram) => receive(datagram) })
  return {
    send: (...parts) =>
      void opened.promise.then(() => {
        if (!is_closed) upstream.send(...parts)
      }),
    onDatagram: (onReceive) => {
      receive = onReceive
    },
    onEnd: (end) => {
      onClosed = end
    },
    close() {
      if (is_closed) return
      is_closed = true
      upstream.close()
      onClosed()
    },
  }
}

/** A connected socket of another edge. It receives nothing before `startReceiving` (handles.ts). */
export function adoptUpstream(socket: Socket): UdpUpstream {
  socket.on('error', ignore)
  return {
    ...overSocket(socket),
    open({ onOpen, onDatagram }) {
      socket.on('message', onDatagram)
      onOpen()
    },
  }
}

function overSocket(socket: Socket): Omit<UdpUpstream, 'open'> {
  return { socket, node_port: null, send: (...parts) => socket.send(parts, ignore), close: () => socket.close() }
}

/** While the link is down, datagrams are lost, and the next one tries again. */
export function openOverLink(node_port: NodePort, paths: Pick<LobbyPaths, 'datagrams'>): UdpUpstream {
  let channel: DatagramChannel | null = null
  let receive: (datagram: Buffer) => void = ignore
  const reopen = (): DatagramChannel | null => {
    const opened = paths.datagrams(node_port)
    channel = opened
    opened?.onDatagram((datagram) => receive(datagram))
    opened?.onEnd(() => {
      if (channel === opened) channel = null
    })
    return opened
  }
  return {
    ...{ socket: null, node_port },
    open({ onOpen, onDatagram }) {
      receive = onDatagram
      queueMicrotask(onOpen)
    },
    send: (...parts) => (channel ?? reopen())?.send(...parts),
    close() {
      receive = ignore
      channel?.close()
    },
  }
}

function ignore(): void {}
