// A request that is forwarded to a backend, and what the edge knows about the backend. forward.ts moves it: it enters a pool
// of its role, waits in a queue, goes over a trunk or gets an upstream connection, and ends with its response.
import type { ApiError } from '@musterhost/contract'
import type { ClientSlot } from '../../addresses/client-share.ts'
import type { BodyUpstream, Exchange, Responder } from '../http/exchange.ts'
import type { NameTable } from '../http/lines.ts'
import type { Address } from '../routes/routes.ts'
import type { ClientQueue } from './client-queue.ts'
import type { PoolName, RolePools } from './pools.ts'
import type { TrunkStream } from './trunks.ts'
import type { UpstreamConnection } from './upstream-pool.ts'

/** What the edge keeps for api and for matchmaker. A lobby has none of it. */
export type RoleResources = {
  pools: RolePools
  queues: Readonly<Partial<Record<PoolName, ClientQueue<ForwardedRequest>>>>
}

/** How requests are sent to a backend, and what its responses may contain. */
export type Backend = {
  /** Null: a lobby. */
  role: RoleResources | null
  /** Called when the nth connection failed. Returns the address to try next; null: give up. May throw an ApiError. */
  again: (exchange: Exchange, attempt: number, error: NodeJS.ErrnoException, failed: Address) => Promise<Address | null>
  /** The response says which shard the request belongs to. Null: the backend has no shards. */
  learnShard: ((exchange: Exchange, shard: number) => void) | null
  /** The refusal for a missing response, or one that is not HTTP. */
  unavailable: () => ApiError
  /** Whether a header of the request is not forwarded; the name is in lower case. Null: all headers are. */
  isRequestDropped: ((name: string, value: string) => boolean) | null
  /** The only headers of the response that are forwarded; null: all are. */
  response_allowed: NameTable<true> | null
  /** Whole lines that the edge adds. */
  request_added: string
  response_added: string
}

export class ForwardedRequest implements Responder {
  readonly exchange: Exchange
  readonly backend: Backend
  address: Address
  /** How many connections for this request have failed. */
  attempt = 0
  /** Set while the request goes over a connection of its own. */
  own_connection: UpstreamConnection<ForwardedRequest> | null = null
  /** Set while the request goes over a trunk. */
  stream: TrunkStream<ForwardedRequest> | null = null
  /** Takes the body of a request that goes over a trunk, while that is sent. */
  sink: BodyUpstream | null = null
  /** Its slot in a pool of its role (pools.ts). */
  slot: ClientSlot | null = null
  /** The queue that the request waits in, or that has let it pass (client-queue.ts). */
  queue: ClientQueue<ForwardedRequest> | null = null
  readonly #abandon: (request: ForwardedRequest) => void

  constructor(
    exchange: Exchange,
    target: { backend: Backend; address: Address; abandon: (request: ForwardedRequest) => void },
  ) {
    this.exchange = exchange
    this.backend = target.backend
    this.address = target.address
    this.#abandon = target.abandon
  }

  get upstream(): BodyUpstream | null {
    return this.sink ?? this.own_connection
  }

  get client_key(): string {
    return this.exchange.client_key
  }

  get is_parked(): boolean {
    return this.stream?.is_waiting === true
  }

  onDrain(): void {
    this.own_connection?.socket.resume()
    if (this.stream !== null) this.stream.trunk.credit(this.stream)
  }

  onLost(): void {
    this.#abandon(this)
  }
}
