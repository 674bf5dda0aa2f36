// Forwards TCP connections and holds each piece of them for a while: `netem` is not in every kernel.
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

type Address = { host: string; port: number }

export class DelayRelay {
  readonly #server: Server
  readonly #target: Address
  readonly #sockets = new Set<Socket>()
  /** Pieces that wait while the relay is cut, in order. */
  #held: (() => void)[] = []
  #delay_ms: number
  #is_cut = false

  private constructor(target: Address, delay_ms: number) {
    this.#target = target
    this.#delay_ms = delay_ms
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket))
  }

  static async open(own: Address, target: Address, delay_ms: number): Promise<DelayRelay> {
    const relay = new DelayRelay(target, delay_ms)
    relay.#server.listen(own.port, own.host)
    await once(relay.#server, 'listening')
    return relay
  }

  /** In each direction. */
  setDelay(ms: number): void {
    this.#delay_ms = ms
  }

  /** While it is cut, connections stay open and nothing passes, as between machines that no packet reaches. */
  setCut(is_cut: boolean): void {
    this.#is_cut = is_cut
    if (is_cut) return
    const held = this.#held
    this.#held = []
    for (const pass of held) pass()
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(near: Socket): void {
    this.#later(() => {
      if (near.destroyed) return
      const far = connect({ ...this.#target, allowHalfOpen: true })
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(from)
        from.setNoDelay(true)
        from.on('data', (piece) => this.#later(() => void to.write(piece)))
        from.on('end', () => this.#later(() => to.end()))
        from.on('error', () => undefined)
        from.on('close', () => {
          this.#sockets.delete(from)
          this.#later(() => to.destroy())
        })
      }
    })
    near.on('error', () => undefined)
  }

  /** Timers of one length end in their order, so pieces stay in order while the delay is the same. */
  #later(pass: () => void): void {
    setTimeout(() => {
      if (this.#is_cut) this.#held.push(pass)
      else pass()
    }, this.#delay_ms)
  }
}
