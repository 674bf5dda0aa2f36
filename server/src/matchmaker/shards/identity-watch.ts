// Callers that wait for a change that concerns an identity: its seats in a party, the party itself, or a wait for a match. A durable change wakes
// the caller, which then reads the state itself. The end of its time and a hang-up wake it as well.
import { ApiError } from '@musterhost/contract'
import { createTimerWhileNeeded } from '../../flow/timer-while-needed.ts'
import type { Change } from '../../journal/changes.ts'
import type { Book } from '../book/state.ts'
import type { Patience } from './waiters.ts'

/** Waiting callers of a process: all that http/watches.ts and sockets.ts let wait, and those that are just ending. */
const WATCHERS_MAX = 80_000
/** Waiting callers of one identity: its tabs and devices. */
const IDENTITY_WATCHERS_MAX = 8
/** How often callers whose time is over are woken. */
const TICK_MS = 250

type Waiter = { patience: Pick<Patience, 'deadline_ms' | 'isGone'>; wake: () => void }

export class IdentityWatch {
  readonly #elapsed: () => number
  readonly #waiters = new Map<string, Set<Waiter>>()
  readonly #timer = createTimerWhileNeeded(TICK_MS, () => this.#tick())
  #count = 0

  constructor(elapsed: () => number) {
    this.#elapsed = elapsed
  }

  /**
   * Resolves when there may be a change, or the patience is over. To be called before the state is read, so that no change
   * is missed in between. Throws API_NOT_AVAILABLE and API_RATE_LIMIT.
   */
  next(identity_id: string, patience: Waiter['patience']): Promise<void> {
    const own = this.#waiters.get(identity_id) ?? new Set()
    if (this.#count >= WATCHERS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 5 })
    if (own.size >= IDENTITY_WATCHERS_MAX) throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: 5 })
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiter: Waiter = {
      patience,
      wake: () => {
        if (own.delete(waiter)) this.#count--
        if (own.size === 0 && this.#waiters.get(identity_id) === own) this.#waiters.delete(identity_id)
        resolve()
      },
    }
    this.#waiters.set(identity_id, own.add(waiter))
    this.#count++
    this.#timer.need()
    return promise
  }

  /** Called with changes that have become durable. */
  onCommit(book: Book | undefined, changes: readonly Change[]): void {
    if (this.#count === 0 || book === undefined) return
    for (const change of changes) {
      if (change.kind === 'player_reserved') {
        const { identity_id, leader_player_id } = change.player
        if (identity_id !== null && leader_player_id !== null) this.#wake(identity_id)
      } else if (change.kind === 'ticket_put') this.#wakePlayers(change.ticket.players)
      else if (change.kind === 'ticket_ended') {
        this.#wakePlayers(book.matching.ended(change.player_id)?.players ?? [])
      } else if (change.kind === 'lobby_ready') {
        for (const player of book.lobbies.get(change.lobby_id)?.players.values() ?? []) {
          const { identity_id, leader_player_id, match } = player
          if (identity_id !== null && (leader_player_id !== null || match != null)) this.#wake(identity_id)
        }
      } else if (change.kind === 'party_put') {
        for (const { identity_id } of change.party.members) this.#wake(identity_id)
        if (change.left !== null) this.#wake(change.left)
      } else if (change.kind === 'party_ended') {
        for (const { identity_id } of book.parties.get(change.party_id)?.members ?? []) this.#wake(identity_id)
      }
    }
  }

  /** After a reload, or because the process is about to stop. */
  wakeAll(): void {
    for (const identity_id of [...this.#waiters.keys()]) this.#wake(identity_id)
  }

  close(): void {
    this.#timer.close()
    this.wakeAll()
  }

  #wakePlayers(players: readonly { identity_id: string | null }[]): void {
    for (const { identity_id } of players) if (identity_id !== null) this.#wake(identity_id)
  }

  #wake(identity_id: string): void {
    for (const waiter of [...(this.#waiters.get(identity_id) ?? [])]) waiter.wake()
  }

  /** Returns whether any caller still waits. */
  #tick(): boolean {
    const now_ms = this.#elapsed()
    for (const own of [...this.#waiters.values()]) {
      for (const waiter of [...own]) {
        const { deadline_ms, isGone } = waiter.patience
        if (deadline_ms <= now_ms || isGone()) waiter.wake()
      }
    }
    return this.#count > 0
  }
}
