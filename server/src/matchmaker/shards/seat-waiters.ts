// Callers that wait until the lobby of their seat is ready. A wait ends when that has become durable, when the seat is gone,
// when its time is over, or when the caller hangs up.
import { ApiError } from '@musterhost/contract'
import type { Change } from '../../journal/changes.ts'
import { shardOf } from '../../journal/pages.ts'
import type { SeatTaken } from '../book/commands.ts'
import type { Book } from '../book/state.ts'

/** Requests of one process that wait for a lobby to start. */
const WAITERS_MAX = 50_000

/** `ready`: the lobby is ready. `gone`: the seat is gone. `timeout`: the time is over, or the caller has hung up. */
export type WaitEnd = 'ready' | 'gone' | 'timeout'

/** How long a caller waits, by the monotonic clock, and whether it has hung up. */
export type Patience = {
  deadline_ms: number
  isGone: () => boolean
  /** Aborted when isGone() becomes true. Without it, isGone() is called at each tick. */
  hangUpSignal?: () => AbortSignal
}

type Seat = Pick<SeatTaken, 'lobby_id' | 'player_id'>

export type Waiter = Seat & {
  namespace_id: string
  patience: Patience
  ended: Promise<WaitEnd>
  end: (how: WaitEnd) => void
  fail: (error: unknown) => void
}

/** Null: the lobby is still starting. */
export function endOfWait(book: Book | undefined, seat: Seat): WaitEnd | null {
  const player = book?.players.get(seat.player_id)
  if (player === undefined || player.remove_ms !== null) return 'gone'
  return book?.lobbies.get(seat.lobby_id)?.ready_ms === null ? null : 'ready'
}

export class SeatWaiters {
  /** By lobby. A seat may have several: a repeated request with the same Idempotency-Key waits for the same seat. */
  readonly #waiters = new Map<string, Set<Waiter>>()
  #count = 0

  get count(): number {
    return this.#count
  }

  /** Throws API_NOT_AVAILABLE. */
  add(namespace_id: string, { lobby_id, player_id }: Seat, patience: Patience): Waiter {
    if (this.#count >= WAITERS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
    const { promise, resolve, reject } = Promise.withResolvers<WaitEnd>()
    const waiter: Waiter = {
      namespace_id,
      lobby_id,
      player_id,
      patience,
      ended: promise,
      end: (how) => {
        this.#remove(waiter)
        resolve(how)
      },
      fail: (error) => {
        this.#remove(waiter)
        reject(error)
      },
    }
    const of_lobby = this.#waiters.get(lobby_id) ?? new Set()
    this.#waiters.set(lobby_id, of_lobby.add(waiter))
    this.#count++
    patience.hangUpSignal?.().addEventListener('abort', () => waiter.end('timeout'), { once: true })
    return waiter
  }

  /** Memory is ahead of the durable changes, so only what never changes is read from the book. */
  onCommit(book: Book | undefined, changes: readonly Change[]): void {
    if (this.#count === 0) return
    for (const change of changes) {
      if (change.kind === 'lobby_ready') this.#end(change.lobby_id, () => 'ready')
      else if (change.kind === 'lobby_stopped') this.#end(change.lobby_id, () => 'gone')
      else if (change.kind === 'player_removed') {
        const player = book?.players.get(change.player_id)
        if (player) this.#end(player.lobby_id, (waiter) => (waiter.player_id === change.player_id ? 'gone' : null))
      }
    }
  }

  /** Reads the seats of the shard's waiters again: after a reload, memory is what is durable. */
  onReload(bookOf: (namespace_id: string) => Book | undefined, shard: number): void {
    this.#endEach((waiter) =>
      shardOf(waiter.namespace_id) === shard ? endOfWait(bookOf(waiter.namespace_id), waiter) : null,
    )
  }

  /** Rejects the waits of a shard. */
  failAll(shard: number, errorOf: () => Error): void {
    for (const waiter of [...this.#waiters.values()].flatMap((of_lobby) => [...of_lobby])) {
      if (shardOf(waiter.namespace_id) === shard) waiter.fail(errorOf())
    }
  }

  /** Ends the waits whose time is over or whose caller has hung up. */
  tick(now_ms: number): void {
    if (this.#count === 0) return
    const isOver = ({ deadline_ms, isGone }: Patience): boolean => deadline_ms <= now_ms || isGone()
    this.#endEach((waiter) => (isOver(waiter.patience) ? 'timeout' : null))
  }

  endAll(): void {
    this.#endEach(() => 'timeout')
  }

  #endEach(howOf: (waiter: Waiter) => WaitEnd | null): void {
    for (const lobby_id of [...this.#waiters.keys()]) this.#end(lobby_id, howOf)
  }

  #end(lobby_id: string, howOf: (waiter: Waiter) => WaitEnd | null): void {
    for (const waiter of [...(this.#waiters.get(lobby_id) ?? [])]) {
      const how = howOf(waiter)
      if (how !== null) waiter.end(how)
    }
  }

  #remove(waiter: Waiter): void {
    const of_lobby = this.#waiters.get(waiter.lobby_id)
    if (of_lobby?.delete(waiter)) this.#count--
    if (of_lobby?.size === 0) this.#waiters.delete(waiter.lobby_id)
  }
}
