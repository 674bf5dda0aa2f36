// Who waits for something that concerns an identity: its seats in a party, or the party itself. A waiter is woken by what
// has become durable and looks for himself; he is also woken when his time is over, or when he has gone.
import { ApiError } from '@muster/contract'
import type { Change } from '../../journal/changes.ts'
import { createTimerWhileNeeded } from '../../timer-while-needed.ts'
import type { Book } from '../book/state.ts'

/** Of a process: all that http/watches.ts and sockets.ts let wait, and those that are just ending. */
const WATCHERS_MAX = 80_000
/** Of one identity: its tabs and devices. */
const IDENTITY_WATCHERS_MAX = 8
/** How often it is looked who has waited long enough. */
const LOOK_MS = 250

export type Patience = { deadline_ms: number; isGone: () => boolean }

export type IdentityWatch = {
  /**
   * Resolves when there is something to look at, or the patience is over. To be called before looking, so that nothing
   * comes in between. Throws API_NOT_AVAILABLE and API_RATE_LIMIT.
   */
  next: (identity_id: string, patience: Patience) => Promise<void>
  /** Of changes that have become durable. */
  told: (book: Book | undefined, changes: readonly Change[]) => void
  /** Anything may be different, or nobody is to wait any longer. */
  wakeAll: () => void
  close: () => void
}

type Waiter = { patience: Patience; wake: () => void }

export function createIdentityWatch(elapsed: () => number): IdentityWatch {
  const waiters = new Map<string, Set<Waiter>>()
  let count = 0
  const looks = createTimerWhileNeeded(LOOK_MS, wakeImpatient)

  function next(identity_id: string, patience: Patience): Promise<void> {
    const own = waiters.get(identity_id) ?? new Set()
    if (count >= WATCHERS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 5 })
    if (own.size >= IDENTITY_WATCHERS_MAX) throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: 5 })
    return new Promise((resolve) => {
      const waiter: Waiter = {
        patience,
        wake() {
          if (own.delete(waiter)) count--
          if (own.size === 0 && waiters.get(identity_id) === own) waiters.delete(identity_id)
          resolve()
        },
      }
      waiters.set(identity_id, own.add(waiter))
      count++
      looks.need()
    })
  }

  function wake(identity_id: string): void {
    for (const waiter of [...(waiters.get(identity_id) ?? [])]) waiter.wake()
  }

  /** Returns whether anybody waits on. */
  function wakeImpatient(): boolean {
    const now_ms = elapsed()
    for (const own of [...waiters.values()]) {
      for (const waiter of [...own]) {
        const { deadline_ms, isGone } = waiter.patience
        if (deadline_ms <= now_ms || isGone()) waiter.wake()
      }
    }
    return count > 0
  }

  function told(book: Book | undefined, changes: readonly Change[]): void {
    if (count === 0 || book === undefined) return
    for (const change of changes) {
      if (change.kind === 'player_reserved') {
        const { identity_id, leader_player_id } = change.player
        if (identity_id !== null && leader_player_id !== null) wake(identity_id)
      } else if (change.kind === 'lobby_ready') {
        for (const player of book.lobbies.get(change.lobby_id)?.players.values() ?? []) {
          if (player.identity_id !== null && player.leader_player_id !== null) wake(player.identity_id)
        }
      } else if (change.kind === 'party_put') {
        for (const { identity_id } of change.party.members) wake(identity_id)
        if (change.left !== null) wake(change.left)
      } else if (change.kind === 'party_ended') {
        for (const { identity_id } of book.parties.get(change.party_id)?.members ?? []) wake(identity_id)
      }
    }
  }

  function wakeAll(): void {
    for (const identity_id of [...waiters.keys()]) wake(identity_id)
  }

  return {
    next,
    told,
    wakeAll,
    close() {
      looks.close()
      wakeAll()
    },
  }
}
