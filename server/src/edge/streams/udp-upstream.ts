// The way of one UDP source to its lobby: a socket on this machine, or a stream of datagrams over the link of a joined node.
import { createSocket, type Socket } from 'node:dgram'
import type { DatagramChannel } from '../../links/datagrams.ts'
import type { LobbyPaths } from '../../links/platform/lobby-paths.ts'
import type { StreamAddress } from '../routes.ts'
import { lookupNothing } from './udp-socket.ts'

export type UdpUpstream = {
  /** Null: over a link. */
  readonly socket: Socket | null
  /** Called once. `onOpen`: from then on datagrams may be sent. */
  open: (on: { onOpen: () => void; onDatagram: (datagram: Buffer) => void }) => void
  /** Parts of one datagram. */
  send: (...parts: readonly Buffer[]) => void
  close: () => void
}

/** `local_address`: that the lobby sees; null: any. A joined node does not know it. */
export function openUpstream(
  { hostname, port, node_id }: StreamAddress,
  local_address: string | null,
  paths: Pick<LobbyPaths, 'datagrams'>,
): UdpUpstream {
  if (node_id !== undefined) return overLink(() => paths.datagrams({ node_id, hostname, port }))
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
  return { socket, send: (...parts) => socket.send(parts, ignore), close: () => socket.close() }
}

/** `openChannel` returns null while the link is down. Datagrams are lost then, and the next one tries again. */
function overLink(openChannel: () => DatagramChannel | null): UdpUpstream {
  let channel: DatagramChannel | null = null
  let receive: (datagram: Buffer) => void = ignore
  const reopen = (): DatagramChannel | null => {
    const opened = openChannel()
    channel = opened
    opened?.onDatagram((datagram) => receive(datagram))
    opened?.onEnd(() => {
      if (channel === opened) channel = null
    })
    return opened
  }
  return {
    socket: null,
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
