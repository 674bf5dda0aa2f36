// What the previous edge listened on, until this edge listens there.
import type { SocketHandle } from '../handles.ts'
import type { ListenerFacts } from './messages.ts'

/** Handles of what the previous edge listened on. Those that nothing takes are closed. */
export class Inheritance {
  readonly #listeners = new Map<string, { port: number; handle: SocketHandle }>()
  readonly #tcp_ports = new Map<number, SocketHandle>()

  addListener({ name, host, port }: ListenerFacts, handle: SocketHandle): void {
    this.#listeners.set(`${name} ${host}`, { port, handle })
  }

  addPort(number: number, handle: SocketHandle): void {
    this.#tcp_ports.set(number, handle)
  }

  /** Null: the previous edge had no such listener, or the setting of its port has changed. */
  takeListener({ name, host, port }: ListenerFacts): SocketHandle | null {
    const key = `${name} ${host}`
    const inherited = this.#listeners.get(key)
    if (inherited === undefined || (port !== 0 && port !== inherited.port)) return null
    this.#listeners.delete(key)
    return inherited.handle
  }

  takePort(number: number): SocketHandle | null {
    const handle = this.#tcp_ports.get(number) ?? null
    this.#tcp_ports.delete(number)
    return handle
  }

  close(): void {
    for (const { handle } of this.#listeners.values()) handle.close()
    for (const handle of this.#tcp_ports.values()) handle.close()
    this.#listeners.clear()
    this.#tcp_ports.clear()
  }
}
