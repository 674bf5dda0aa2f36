// A pool that opens few connections at first, and more only when those do not suffice: none of them has been free for a moment,
// or requests have waited for long. A role asks dozens of short questions at once when it starts. The pool of the driver opens
// a connection for each, and each is a process of PostgreSQL with some MB.
import pg from 'pg'

/** Connections that a burst of requests opens. */
const CONNECTIONS_AT_ONCE = 3
/** One more is opened when no connection became free in this time. */
const STUCK_MS = 50
/** One more is opened when requests have waited for so many times STUCK_MS, although connections became free. */
const BUSY_CHECKS = 10

type ConnectCallback = Parameters<pg.Pool['connect']>[0]

export class GrowingPool extends pg.Pool {
  readonly #max: number
  #timer: NodeJS.Timeout | null = null
  #checks = 0
  /** A request got a connection since the last check. */
  #has_served = false
  /** Connections that are open; the others of `totalCount` are being opened. */
  #open_count = 0

  constructor(config: pg.PoolConfig & { max: number }) {
    super({ ...config, max: Math.min(config.max, CONNECTIONS_AT_ONCE) })
    this.#max = config.max
    this.on('acquire', () => {
      this.#has_served = true
    })
    this.on('connect', () => {
      this.#open_count++
    })
    // The next burst starts with few again. At rest two requests that meet wait for each other: a further connection would be
    // opened for each such moment, and closed when it was unused for long.
    const rest_count = (config.min ?? 0) > 1 ? CONNECTIONS_AT_ONCE : 1
    this.on('remove', () => {
      this.#open_count--
      this.options.max = Math.min(this.#max, Math.max(this.totalCount, rest_count))
    })
  }

  override connect(): Promise<pg.PoolClient>
  override connect(callback: ConnectCallback): void
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    const connecting = callback === undefined ? super.connect() : (super.connect(callback) as undefined)
    if (this.#timer === null && this.#isWaiting()) {
      this.#checks = 0
      this.#startTimer()
    }
    return connecting
  }

  #isWaiting(): boolean {
    return this.waitingCount > 0 && this.totalCount >= this.options.max && this.options.max < this.#max && !this.ending
  }

  #startTimer(): void {
    this.#has_served = false
    this.#timer = setTimeout(() => this.#check(), STUCK_MS).unref()
  }

  #check(): void {
    this.#timer = null
    if (!this.#isWaiting()) return
    this.#checks++
    const is_opening = this.totalCount > this.#open_count
    if (!is_opening && (!this.#has_served || this.#checks > BUSY_CHECKS)) this.#grow()
    this.#startTimer()
  }

  /** The connection serves those that wait once it is released. */
  #grow(): void {
    this.options.max++
    super.connect().then(
      (client) => client.release(),
      () => undefined,
    )
  }
}
