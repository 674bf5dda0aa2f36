// Callers that wait until the lobby of their seat is ready. A wait ends when that has become durable, or when the seat is gone.
import type { Change } from '../../journal/changes.ts'
import type { SeatTaken } from '../book/commands.ts'
import type { Book } from '../book/state.ts'
import { type Patience, type Waiter, Waiters } from './waiters.ts'

type SeatEnd = 'ready' | 'gone'
/** `ready`: the lobby is ready. `gone`: the seat is gone. `timeout`: the time is over, or the caller has hung up. */
export type WaitEnd = SeatEnd | 'timeout'

type Seat = Pick<SeatTaken, 'lobby_id' | 'player_id'>

/** Null: the lobby is still starting. */
export function endOfWait(book: Book | undefined, seat: Seat): SeatEnd | null {
  const player = book?.players.get(seat.player_id)
  if (player === undefined || player.remove_ms !== null) return 'gone'
  return book?.lobbies.get(seat.lobby_id)?.ready_ms === null ? null : 'ready'
}

export class SeatWaiters extends Waiters<SeatEnd, Seat> {
  /** Throws API_NOT_AVAILABLE. */
  add(namespace_id: string, { lobby_id, player_id }: Seat, patience: Patience): Waiter<SeatEnd, Seat> {
    return this.wait(lobby_id, namespace_id, { lobby_id, player_id }, patience)
  }

  /** Memory is ahead of the durable changes, so only what never changes is read from the book. */
  onCommit(book: Book | undefined, changes: readonly Change[]): void {
    if (this.count === 0) return
    for (const change of changes) {
      if (change.kind === 'lobby_ready') for (const waiter of this.waitersOf(change.lobby_id)) waiter.end('ready')
      else if (change.kind === 'lobby_stopped') for (const waiter of this.waitersOf(change.lobby_id)) waiter.end('gone')
      else if (change.kind === 'player_removed') {
        const lobby_id = book?.players.get(change.player_id)?.lobby_id ?? ''
        for (const waiter of this.waitersOf(lobby_id)) if (waiter.of.player_id === change.player_id) waiter.end('gone')
      }
    }
  }

  /** Reads the seats of the shard's waiters again: after a reload, memory is what is durable. */
  onReload(bookOf: (namespace_id: string) => Book | undefined, shard: number): void {
    for (const waiter of this.waitersIn(shard)) {
      const how = endOfWait(bookOf(waiter.namespace_id), waiter.of)
      if (how !== null) waiter.end(how)
    }
  }
}
