// Few requests of a class are at a role at the same time: what is more waits here, and clients take turns. A role answers in
// the order in which requests reach it, so a flood of one client would otherwise be answered before what others ask. A
// request that takes long is parked (parking.ts) and gives its turn to the next.
import type { Exchange } from '../http/exchange.ts'

export class Turns {
  readonly #at_once_max: number
  #active_count = 0
  /** By client, the next one first; of one client, in the order in which they came. */
  readonly #waiting = new Map<string, Set<Exchange>>()

  constructor(at_once_max: number) {
    this.#at_once_max = at_once_max
  }

  /** True: it is the turn of this request. Otherwise leave() returns it later. */
  take(exchange: Exchange): boolean {
    exchange.turns = this
    if (this.#active_count < this.#at_once_max) {
      this.#active_count++
      return true
    }
    const of_client = this.#waiting.get(exchange.source) ?? new Set()
    this.#waiting.set(exchange.source, of_client.add(exchange))
    return false
  }

  /** The request has ended, or nobody waits for it. Returns the one whose turn it is now. */
  leave(exchange: Exchange): Exchange | null {
    exchange.turns = null
    const { source } = exchange
    const of_client = this.#waiting.get(source)
    if (of_client?.delete(exchange)) {
      if (of_client.size === 0) this.#waiting.delete(source)
      return null
    }
    this.#active_count--
    return this.#next()
  }

  #next(): Exchange | null {
    const [client] = this.#waiting
    if (client === undefined) return null
    const [source, of_client] = client
    const [exchange] = of_client
    of_client.delete(exchange!)
    // Behind the others, if the client has more.
    this.#waiting.delete(source)
    if (of_client.size > 0) this.#waiting.set(source, of_client)
    this.#active_count++
    return exchange!
  }
}
