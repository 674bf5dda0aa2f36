// How the edge reaches the ports of lobbies on joined nodes. For each port it has a unix socket in a folder of its own:
// whatever connects there is carried over the node's link to the port. So to the edge such a lobby is an address like any
// other. Only this process can enter the folder. UDP has no such sockets, and uses streams of datagrams.
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { type DatagramChannel, openDatagrams } from '../datagrams.ts'
import { joinStreams } from '../streams.ts'
import type { LinkListener } from './listener.ts'

/** Ports with a unix socket. The one that was asked for longest ago is closed first; its open connections stay. */
const PORTS_MAX = 8_192

/** After the edge has sent everything, a lobby may still send for this time. */
const HALF_CLOSED_MS_MAX = 5 * 60_000

export type NodePort = { node_id: string; hostname: string; port: number }

export class LobbyPaths {
  readonly #listener: Pick<LinkListener, 'streamsOf'>
  readonly #folder: string
  /** By node, host and port, in the order of their last use. */
  readonly #ports = new Map<string, { server: Server; path: string }>()
  #made_count = 0

  /** `folder`: is emptied, and only this user can enter it. */
  constructor(listener: Pick<LinkListener, 'streamsOf'>, folder: string) {
    this.#listener = listener
    this.#folder = folder
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { mode: 0o700 })
    chmodSync(folder, 0o700)
  }

  /** The path of the unix socket of a port. It accepts connections from now on. */
  pathOf(target: NodePort): string {
    const key = `${target.node_id} ${target.hostname} ${target.port}`
    const known = this.#ports.get(key)
    if (known !== undefined) {
      this.#ports.delete(key)
      this.#ports.set(key, known)
      return known.path
    }
    if (this.#ports.size >= PORTS_MAX) this.#closeOldest()
    const path = join(this.#folder, String(this.#made_count++))
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => this.#carry(target, socket))
    // The socket is bound when this returns.
    server.listen(path)
    this.#ports.set(key, { server, path })
    return path
  }

  /** Null while the link of the node is down. */
  datagrams({ node_id, hostname, port }: NodePort): DatagramChannel | null {
    const stream = this.#listener
      .streamsOf(node_id)
      ?.request({ ':method': 'POST', ':path': '/udp', 'x-host': hostname, 'x-port': String(port) })
    return stream === undefined ? null : openDatagrams(stream)
  }

  close(): void {
    for (const { server } of this.#ports.values()) server.close()
    this.#ports.clear()
  }

  #carry({ node_id, hostname, port }: NodePort, socket: Socket): void {
    socket.on('error', () => {})
    const session = this.#listener.streamsOf(node_id)
    if (session === null) {
      socket.destroy()
      return
    }
    const stream = session.request({ ':method': 'POST', ':path': '/tcp', 'x-host': hostname, 'x-port': String(port) })
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
