// How an edge reaches the ports of lobbies on other nodes. For each port it has a unix socket in a folder of its own:
// whatever connects there is carried over a link to the port. So to the edge such a lobby is an address like any
// other. Only this process can enter the folder. UDP has no such sockets, and uses streams of datagrams.
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { type DatagramChannel, openDatagrams } from '../datagrams.ts'
import { portLine } from '../port-line.ts'
import { joinStreams } from '../streams.ts'
import type { LinkListener } from './listener.ts'

/** Ports with a unix socket. The one that was asked for longest ago is closed first; its open connections stay. */
const PORTS_MAX = 8_192

/** After the edge has sent everything, a lobby may still send for this time. */
const HALF_CLOSED_MS_MAX = 5 * 60_000

/** `node_id`: where the lobby runs; empty: on the platform's own machine. */
export type NodePort = { node_id: string; hostname: string; port: number; lobby_id: string; port_name: string }

/** Opens streams to ports of lobbies. Null while the link is down. */
export type Carrier = {
  tcp: (target: NodePort) => Duplex | null | Promise<Duplex | null>
  udp: (target: NodePort) => Duplex | null
}

/** From the platform: straight to the node of the lobby, over its link. */
export function carryToNodes(listener: Pick<LinkListener, 'streamsOf' | 'streamsSoonOf'>): Carrier {
  const request = (session: ClientHttp2Session | null, path: '/tcp' | '/udp', { hostname, port }: NodePort) =>
    session?.request({ ':method': 'POST', ':path': path, 'x-host': hostname, 'x-port': String(port) }) ?? null
  return {
    tcp: (target) => {
      const session = listener.streamsOf(target.node_id)
      if (session !== null) return request(session, '/tcp', target)
      return listener.streamsSoonOf(target.node_id).then((soon) => request(soon, '/tcp', target))
    },
    udp: (target) => request(listener.streamsOf(target.node_id), '/udp', target),
  }
}

/**
 * From a joined node: through the platform, which finds the lobby. From a further edge process: through the first one. `pathOf`
 * returns the unix socket of the supervisor, or of that process.
 */
export function carryThrough(pathOf: () => string): Carrier {
  const open =
    (transport: 'tcp' | 'udp') =>
    ({ lobby_id, port_name }: NodePort): Duplex => {
      const socket = connect({ path: pathOf(), allowHalfOpen: true })
      socket.write(portLine({ transport, lobby_id, port_name }))
      return socket
    }
  return { tcp: open('tcp'), udp: open('udp') }
}

export class LobbyPaths {
  readonly #carrier: Carrier
  readonly #folder: string
  /** By node, host and port, in the order of their last use. */
  readonly #ports = new Map<string, { server: Server; path: string }>()
  #made_count = 0

  /** `folder`: is emptied, and only this user can enter it. */
  constructor(carrier: Carrier, folder: string) {
    this.#carrier = carrier
    this.#folder = folder
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { mode: 0o700 })
    chmodSync(folder, 0o700)
  }

  /** The path of the unix socket of a port. It accepts connections from now on. */
  pathOf(target: NodePort): string {
    const { node_id, hostname, port, lobby_id } = target
    const key = `${node_id} ${hostname} ${port} ${lobby_id}`
    const known = this.#ports.get(key)
    if (known !== undefined) {
      this.#ports.delete(key)
      this.#ports.set(key, known)
      return known.path
    }
    if (this.#ports.size >= PORTS_MAX) this.#closeOldest()
    const path = join(this.#folder, String(this.#made_count++))
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      void this.#carry(target, socket)
    })
    // The socket is bound when this returns.
    server.listen(path)
    this.#ports.set(key, { server, path })
    return path
  }

  /** Null while the link of the node is down. */
  datagrams(target: NodePort): DatagramChannel | null {
    const stream = this.#carrier.udp(target)
    return stream === null ? null : openDatagrams(stream)
  }

  close(): void {
    for (const { server } of this.#ports.values()) server.close()
    this.#ports.clear()
  }

  async #carry(target: NodePort, socket: Socket): Promise<void> {
    socket.on('error', () => {})
    const opening = this.#carrier.tcp(target)
    const stream = opening instanceof Promise ? await opening : opening
    if (stream === null) {
      socket.destroy()
      return
    }
    joinStreams(socket, stream)
    // The edge's end of a unix socket shows a broken connection as one that has ended its sending side.
    socket.once('end', () => {
      const overdue = setTimeout(() => socket.destroy(), HALF_CLOSED_MS_MAX)
      socket.once('close', () => clearTimeout(overdue))
    })
    socket.resume()
  }

  #closeOldest(): void {
    for (const [key, { server }] of this.#ports) {
      server.close()
      this.#ports.delete(key)
      return
    }
  }
}
