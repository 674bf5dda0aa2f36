// A UDP client of a game server: sends a request until the packet that it waits for has arrived.
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { TestContext } from 'node:test'

const WAIT_MS_MAX = 30_000
/** A datagram may be lost, and a server that nobody plays on may read its socket once in a second. */
const AGAIN_MS = 300

export class Datagrams {
  readonly #socket: Socket
  readonly #host: string
  readonly #port: number
  readonly #packets: Buffer[] = []

  private constructor(socket: Socket, host: string, port: number) {
    this.#socket = socket
    this.#host = host
    this.#port = port
    socket.on('message', (packet) => this.#packets.push(packet))
  }

  /** `url`: `udp://HOST:PORT`. `address`: the local address. It closes with the test. */
  static async open(t: TestContext, url: string, address: string): Promise<Datagrams> {
    const { hostname, port } = new URL(url)
    const socket = createSocket('udp4')
    t.after(() => socket.close())
    socket.bind(0, address)
    await once(socket, 'listening')
    return new Datagrams(socket, hostname, Number(port))
  }

  /** How many packets have arrived. */
  get received(): number {
    return this.#packets.length
  }

  send(packet: Buffer): void {
    this.#socket.send(packet, this.#port, this.#host)
  }

  /** Sends `request` again and again. Resolves with the first packet from now on for which `read` returns something. */
  async ask<T>(request: Buffer, read: (packet: Buffer) => T | null): Promise<T> {
    let looked_at = this.#packets.length
    const end_ms = performance.now() + WAIT_MS_MAX
    while (performance.now() < end_ms) {
      this.send(request)
      const late = AbortSignal.timeout(AGAIN_MS)
      while (!late.aborted) {
        for (; looked_at < this.#packets.length; looked_at++) {
          const answer = read(this.#packets[looked_at]!)
          if (answer !== null) return answer
        }
        await once(this.#socket, 'message', { signal: late }).catch(() => undefined)
      }
    }
    throw new Error(`No response to ${request.toString('latin1')} in ${WAIT_MS_MAX} ms.`)
  }
}
