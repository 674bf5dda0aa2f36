// The node's end of the connections of players: opens a connection to a port of a lobby on this machine, and joins it to a
// stream of the link. The platform can reach no other address of this machine.
import { createSocket } from 'node:dgram'
import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import { connect, isIPv4, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { numberOfAddress } from '@musterhost/contract/edge'
import { LOBBY_PORTS } from '../../config/edge.ts'
import type { AddressBlock } from '../../config/lobby-network.ts'
import { openDatagrams } from '../datagrams.ts'
import { RETIRE_PATH } from '../protocol.ts'
import { joinStreams } from '../streams.ts'

/** How long a connection waits for a lobby that reports that it is ready just before it listens. */
const LISTEN_WAIT_MS_MAX = 1_000
const LISTEN_PAUSE_MS = 50
const LOOPBACK = '127.0.0.1'

/** The networks of the lobbies of this machine; null: they share that of the machine. */
export type LobbyTargets = { network: AddressBlock | null }

/** `onRetire`: the edge at the other end is being replaced. */
export function serveLobbyStreams(session: ServerHttp2Session, targets: LobbyTargets, onRetire: () => void): void {
  const { network } = targets
  const isOfLobby = (host: string, port: number): boolean =>
    (host === LOOPBACK && port >= LOBBY_PORTS.min && port <= LOBBY_PORTS.max) ||
    (network !== null && isIPv4(host) && isIn(network, host))
  session.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    if (headers[':path'] === RETIRE_PATH) {
      stream.respond({ ':status': 200 }, { endStream: true })
      onRetire()
      return
    }
    const { host, port } = portOf(headers)
    if (!isOfLobby(host, port)) stream.respond({ ':status': 403 }, { endStream: true })
    else if (headers[':path'] === '/udp') carryDatagrams(stream, host, port)
    else void carryConnection(stream, host, port)
  })
}

function isIn({ first, bits }: AddressBlock, host: string): boolean {
  const number = numberOfAddress(host)
  return number >= first && number < first + 2 ** (32 - bits)
}

function portOf({ 'x-host': host, 'x-port': port }: IncomingHttpHeaders): { host: string; port: number } {
  return { host: String(host), port: Number(port) }
}

async function carryConnection(stream: ServerHttp2Stream, host: string, port: number): Promise<void> {
  const socket = await connectTo(stream, host, port)
  if (socket === null) {
    if (!stream.destroyed) stream.close(CONNECT_ERROR)
    return
  }
  stream.respond({ ':status': 200 })
  joinStreams(stream, socket)
}

/** Error code of HTTP/2 (CONNECT_ERROR): the connection could not be made. */
const CONNECT_ERROR = 0xa

/** Null when the lobby does not listen, or the player is gone. */
async function connectTo(stream: ServerHttp2Stream, host: string, port: number): Promise<Socket | null> {
  for (let waited_ms = 0; waited_ms <= LISTEN_WAIT_MS_MAX; waited_ms += LISTEN_PAUSE_MS) {
    if (stream.destroyed) return null
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true })
    const code = await new Promise<string | null>((resolve) => {
      socket.once('connect', () => resolve(null))
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''))
    })
    if (code === null) return socket
    if (code !== 'ECONNREFUSED') return null
    await delay(LISTEN_PAUSE_MS)
  }
  return null
}

function carryDatagrams(stream: ServerHttp2Stream, host: string, port: number): void {
  const socket = createSocket('udp4')
  // ECONNREFUSED: the server does not listen now. This says nothing about the next datagram.
  socket.on('error', () => {})
  stream.respond({ ':status': 200 })
  const channel = openDatagrams(stream)
  socket.connect(port, host, () => {
    channel.onDatagram((datagram) => socket.send(datagram, () => {}))
    socket.on('message', (datagram) => channel.send(datagram))
  })
  channel.onEnd(() => socket.close())
}
