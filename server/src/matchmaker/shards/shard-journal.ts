// The journal of one shard as its writer knows it: the writer's id, and the seq of the last row. It appends rows by the
// protocol of fence.ts, takes the shard over, and hands the rows of the projected tables on.
import type { Pool } from 'pg'
import { newId } from '../../ids.ts'
import { type Entry, encodePage } from '../../journal/pages.ts'
import type { Metrics } from '../../observe/metrics.ts'
import type { RowSnapshots } from '../projection/affected-rows.ts'
import type { Projection } from '../projection/projection.ts'
import { wakesOfChanges, wakesOfRows } from '../projection/wakes.ts'
import type { TakenShard } from './empty-shards.ts'
import { type AppendOutcome, append, type Claims, didCommit, takeOver } from './fence.ts'
import type { PortClaim } from './port-claims.ts'
import type { PlacesOf } from './room-claims.ts'

export type ShardJournalOptions = {
  shard: number
  pool: Pool
  projection: Projection
  metrics: Metrics
  /** The limits that a new lobby must keep. */
  placesOf: PlacesOf
}

export type ShardRow = {
  /** Book time of the changes. */
  ms: number
  entries: readonly Entry[]
  /** What the lobbies of the changes use, or do not use any more. */
  room: Claims['room']
  /** The changed rows of the projected tables. */
  snapshots: RowSnapshots
}

export class ShardJournal {
  readonly #options: ShardJournalOptions
  /** The name under which this process appends; new with each takeover. */
  #writer = ''
  /** Sequence number of the last journal row. */
  #seq = 0

  constructor(options: ShardJournalOptions) {
    this.#options = options
  }

  /**
   * Writes after this takeover from now on. `snapshots`: rows that the projected tables do not have yet; null: the tables reflect
   * the takeover.
   */
  begin({ writer, takeover }: TakenShard, snapshots: RowSnapshots | null): void {
    const { shard, projection } = this.#options
    this.#writer = writer
    this.#seq = takeover.seq
    projection.reset(shard)
    if (snapshots === null) return
    projection.add(shard, this.#seq, snapshots, wakesOfRows(snapshots.lobbies.values()))
  }

  async append({ ms, entries, room, snapshots }: ShardRow): Promise<AppendOutcome> {
    const { shard, pool, projection, metrics, placesOf } = this.#options
    const payload = encodePage({ format: 1, ms, entries })
    const since = performance.now()
    const row = { shard, seq: this.#seq + 1, writer: this.#writer, payload }
    const ports = portClaimsOf(entries)
    const claims = { ports, now_ms: ms, room, placesOf }
    const outcome = await append(pool, row, room.length === 0 && ports.length === 0 ? null : claims)
    metrics.append_seconds.observe({ outcome: outcome.kind }, (performance.now() - since) / 1_000)
    if (outcome.kind !== 'committed') return outcome
    this.#seq += 1
    projection.add(shard, this.#seq, snapshots, wakesOfChanges(entries, snapshots.lobbies))
    return outcome
  }

  /** A takeover by this process. `is_again`: it has written before, and yields to a writer that came after its last row. */
  takeover(is_again: boolean): ShardTakeover {
    const { shard, pool } = this.#options
    return new ShardTakeover(pool, { shard, seq: this.#seq, writer: this.#writer }, is_again)
  }
}

/** A takeover of one shard, tried until the database responds. `known`: the last row before it, and the writer. */
export class ShardTakeover {
  readonly #pool: Pool
  readonly #known: { shard: number; seq: number; writer: string }
  /** All ids of this process as a writer since the known row; null: it has not written. */
  readonly #writers: Set<string> | null

  constructor(pool: Pool, known: { shard: number; seq: number; writer: string }, is_again: boolean) {
    this.#pool = pool
    this.#known = known
    this.#writers = is_again ? new Set([known.writer]) : null
  }

  /** Appends the takeover row, as a new writer. Returns null if another writer has appended after the known row. */
  async attempt(times: { now_ms: number; served_ms: number }): Promise<TakenShard | null> {
    const { shard, seq } = this.#known
    const writer = newId(times.now_ms)
    this.#writers?.add(writer)
    const mine = this.#writers === null ? null : { seq, writers: this.#writers }
    const takeover = await takeOver(this.#pool, shard, writer, times, mine)
    return takeover === null ? null : { writer, takeover }
  }

  /** Whether the append after the known row has committed. To be called after an attempt, which waits for that append. */
  hasCommitted(): Promise<boolean> {
    const { shard, seq, writer } = this.#known
    return didCommit(this.#pool, { shard, seq: seq + 1, writer })
  }
}

function portClaimsOf(entries: readonly Entry[]): PortClaim[] {
  const claims: PortClaim[] = []
  for (const { changes } of entries) {
    for (const change of changes) {
      if (change.kind !== 'lobby_created') continue
      const { lobby_id, edge_ports } = change.lobby
      for (const { transport, port } of edge_ports) claims.push({ transport, port, lobby_id })
    }
  }
  return claims
}
