// All books of this process: 64 shards, the clock that ends what is due, and those who wait for a lobby to be ready.
import { ApiError } from '@muster/contract'
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import type { Book, Decision } from './book.ts'
import type { Change, Lobby } from './changes.ts'
import { SHARD_COUNT, shardOf } from './journal.ts'
import type { Projection } from './project.ts'
import { createShard, type Decide, type Shard } from './shard.ts'

/** How often what is due is looked for. */
const TICK_MS = 100
/** Requests that may wait for a lobby to start. */
const WAITERS_MAX = 50_000
/** Shards that are read at the same time when a process starts. */
const OPENING_MAX = 8

/** How the wait for a seat's lobby ended: it is ready; the seat is gone with it; the time is over. */
export type WaitEnd = 'ready' | 'gone' | 'timeout'

export type Books = {
  /** Carries out a command and answers its result, durable. Throws the ApiError of a refusal. */
  commit: <T>(namespace_id: string, decide: Decide<T>) => Promise<T>
  /** The lobby as memory has it now; for reading, never to be changed. */
  lobby: (namespace_id: string, lobby_id: string) => Lobby | undefined
  book: (namespace_id: string) => Book | undefined
  /** Waits until the lobby of this player's seat is ready. */
  waitUntilReady: (namespace_id: string, player_id: string, timeout_ms: number) => Promise<WaitEnd>
  /** Takes all shards over and reads them. */
  open: () => Promise<void>
  close: () => Promise<void>
}

export type BooksOptions = {
  pool: Pool
  projection: Projection
  now: () => number
  log: Logger
  /** Called once: another process writes now. */
  onDeposed: () => void
}

type Waiter = { namespace_id: string; end: (how: WaitEnd) => void }

export function createBooks(options: BooksOptions): Books {
  const waiters = new Map<string, Waiter>()
  let is_deposed = false
  const shards: Shard[] = Array.from({ length: SHARD_COUNT }, (_, shard) =>
    createShard({ ...options, shard, onCommit: wake, onReload: wakeAll, onDeposed }),
  )
  const timer = setInterval(() => {
    for (const shard of shards) shard.tick()
  }, TICK_MS)

  const shardFor = (namespace_id: string): Shard => shards[shardOf(namespace_id)]!

  function onDeposed(): void {
    if (is_deposed) return
    is_deposed = true
    options.onDeposed()
  }

  async function commit<T>(namespace_id: string, decide: Decide<T>): Promise<T> {
    const decision: Decision<T> = await shardFor(namespace_id).run(namespace_id, decide)
    if ('refused' in decision) throw new ApiError(decision.refused)
    return decision.result
  }

  function wake(namespace_id: string, changes: readonly Change[]): void {
    if (waiters.size === 0) return
    for (const change of changes) {
      if (change.kind === 'player_removed') waiters.get(change.player_id)?.end('gone')
      else if (change.kind === 'lobby_ready') wakeLobby(namespace_id, change.lobby_id)
      else if (change.kind === 'lobby_stopped') wakeAll()
    }
  }

  function wakeLobby(namespace_id: string, lobby_id: string): void {
    const lobby = shardFor(namespace_id).book(namespace_id)?.lobbies.get(lobby_id)
    for (const player_id of lobby?.players.keys() ?? []) waiters.get(player_id)?.end('ready')
  }

  function wakeAll(): void {
    for (const [player_id, waiter] of waiters) {
      const how = stateOf(waiter.namespace_id, player_id)
      if (how !== null) waiter.end(how)
    }
  }

  /** Null: the lobby is still starting. */
  function stateOf(namespace_id: string, player_id: string): WaitEnd | null {
    const book = shardFor(namespace_id).book(namespace_id)
    const player = book?.players.get(player_id)
    if (book === undefined || player === undefined || player.remove_ms !== null) return 'gone'
    return book.lobbies.get(player.lobby_id)?.ready_ms === null ? null : 'ready'
  }

  function waitUntilReady(namespace_id: string, player_id: string, timeout_ms: number): Promise<WaitEnd> {
    const now_already = stateOf(namespace_id, player_id)
    if (now_already !== null) return Promise.resolve(now_already)
    if (waiters.size >= WAITERS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
    return new Promise((resolve) => {
      const earlier = waiters.get(player_id)
      const late = setTimeout(() => waiter.end('timeout'), timeout_ms)
      const waiter: Waiter = {
        namespace_id,
        end(how) {
          clearTimeout(late)
          if (waiters.get(player_id) === waiter) waiters.delete(player_id)
          // A repeated request with the same Idempotency-Key waits for the same seat.
          earlier?.end(how)
          resolve(how)
        },
      }
      waiters.set(player_id, waiter)
    })
  }

  async function open(): Promise<void> {
    const next = shards.values()
    const openSome = async (): Promise<void> => {
      for (const shard of next) await shard.open()
    }
    await Promise.all(Array.from({ length: OPENING_MAX }, openSome))
  }

  async function close(): Promise<void> {
    clearInterval(timer)
    await Promise.all(shards.map((shard) => shard.close()))
    for (const waiter of [...waiters.values()]) waiter.end('timeout')
  }

  return {
    commit,
    lobby: (namespace_id, lobby_id) => shardFor(namespace_id).book(namespace_id)?.lobbies.get(lobby_id),
    book: (namespace_id) => shardFor(namespace_id).book(namespace_id),
    waitUntilReady,
    open,
    close,
  }
}
