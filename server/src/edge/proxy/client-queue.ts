// Limits how many requests of a class are at a role at the same time. Further requests wait here, and clients take turns. A
// role responds in the order in which requests reach it, so without the queue a flood of one client would delay all others.
// A request that takes long leaves the queue: the role says that it waits.

export class ClientQueue<T extends { readonly client_key: string }> {
  readonly #at_once_max: number
  #active_count = 0
  /** By client, the next one first; the requests of one client in order of arrival. */
  readonly #waiting = new Map<string, Set<T>>()

  constructor(at_once_max: number) {
    this.#at_once_max = at_once_max
  }

  /** Returns true when the request may pass at once. Otherwise a later leave() returns it. */
  enter(request: T): boolean {
    if (this.#active_count < this.#at_once_max) {
      this.#active_count++
      return true
    }
    const of_client = this.#waiting.get(request.client_key) ?? new Set()
    this.#waiting.set(request.client_key, of_client.add(request))
    return false
  }

  /** The request has ended, or is given up while it waits. Returns the request that may pass now. */
  leave(request: T): T | null {
    const { client_key } = request
    const of_client = this.#waiting.get(client_key)
    if (of_client?.delete(request)) {
      if (of_client.size === 0) this.#waiting.delete(client_key)
      return null
    }
    this.#active_count--
    return this.#next()
  }

  #next(): T | null {
    const [first] = this.#waiting
    if (first === undefined) return null
    const [client_key, of_client] = first
    const [request] = of_client
    of_client.delete(request!)
    // The client's further requests wait after those of the other clients.
    this.#waiting.delete(client_key)
    if (of_client.size > 0) this.#waiting.set(client_key, of_client)
    this.#active_count++
    return request!
  }
}
