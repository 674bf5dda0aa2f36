// How further edge processes of the platform's machine reach lobbies of joined nodes: through the first process, which has the links.
// It listens at a unix socket. A connection names a port of a lobby in its first line (port-line.ts), and is then joined to it.
import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { openDatagrams } from '../datagrams.ts'
import { readPortLine } from '../port-line.ts'
import { joinStreams } from '../streams.ts'
import type { LobbyPorts } from './edge-calls.ts'

/** By which look-ups for other edge processes are limited: they have looked the lobby up before. */
const CLIENT_KEY = 'edges of this machine'

export class EdgeBridge {
  readonly #server: Server
  readonly #open = new Set<Socket>()

  private constructor(ports: LobbyPorts) {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      this.#open.add(socket)
      socket.once('close', () => this.#open.delete(socket))
      socket.on('error', () => {})
      carry(socket, ports).catch(() => void socket.destroy())
    })
  }

  static async open(path: string, ports: LobbyPorts): Promise<EdgeBridge> {
    const bridge = new EdgeBridge(ports)
    rmSync(path, { force: true })
    bridge.#server.listen(path)
    await once(bridge.#server, 'listening')
    chmodSync(path, 0o600)
    return bridge
  }

  /** Connections of players through other processes. */
  get count(): number {
    return this.#open.size
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#open) socket.destroy()
  }
}

async function carry(socket: Socket, ports: LobbyPorts): Promise<void> {
  const wanted = await readPortLine(socket)
  if (wanted === null) return void socket.destroy()
  if (wanted.transport === 'tcp') {
    const port = await ports.connect(wanted, CLIENT_KEY)
    if (port === null) return void socket.destroy()
    joinStreams(socket, port)
    return
  }
  const channel = await ports.datagrams(wanted, CLIENT_KEY)
  if (channel === null) return void socket.destroy()
  const far = openDatagrams(socket)
  far.onDatagram((datagram) => channel.send(datagram))
  channel.onDatagram((datagram) => far.send(datagram))
  far.onEnd(() => channel.close())
  channel.onEnd(() => far.close())
}
