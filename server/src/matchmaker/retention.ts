// Removes old rows of the journal and of its tables, after the times of the settings.
//
// A row of the journal is removed when three things hold. It is old by the database's clock. The tables reflect it: it is
// below projected_seq, so a shard's last row always stays. Every reader has read it: a reader has a row in journal_readers
// for each shard, inserted before it relies on the journal. What a book still remembers is never removed from the tables.
import type { Pool } from 'pg'
import type { Context } from '../context.ts'
import { type OldRows, removeInBatches, removeOld } from '../database/remove-old.ts'
import { type Sweeper, type SweepStep, startSweeper } from '../database/sweeper.ts'
import { UNUSED_GUESTS } from '../database/unused-guests.ts'
import { SHARD_COUNT } from '../journal/pages.ts'
import { MEMORY_MS } from './book/state.ts'
import type { ExplanationStore } from './explanations/store.ts'

const SWEEP_EVERY_MS = 60_000

export const OLD_LOBBIES: OldRows = { table: 'lobbies', ended: 'stop_ts' }
/** Finer than an hour: kept with the events of analytics, and for the day that these are kept longer. */
const OLD_FINDS: OldRows = { table: 'find_durations', ended: 'ts', only: 'width < 3600' }
const OLD_PLATFORM_FINDS: OldRows = { table: 'platform_find_durations', ended: 'ts' }
const OLD_FIND_HOURS: OldRows = { table: 'find_durations', ended: 'ts', only: 'width >= 3600' }
const OLD_MATCH_WAITS: OldRows = { table: 'match_waits', ended: 'ts', only: 'width < 3600' }
const OLD_MATCH_WAIT_HOURS: OldRows = { table: 'match_waits', ended: 'ts', only: 'width >= 3600' }
const DAY_MS = 24 * 60 * 60_000
const OLD_EXPLANATIONS: OldRows = { table: 'explanations', ended: 'create_ts' }
/** All roles write them; the matchmaker removes them. */
const OLD_RAY_SPANS: OldRows = { table: 'ray_spans', ended: 'ts' }
export const OLD_PLAYERS: OldRows = { table: 'players', ended: 'remove_ts' }
export const OLD_PARTIES: OldRows = { table: 'parties', ended: 'end_ts' }
export const OLD_TICKETS: OldRows = { table: 'tickets', ended: 'end_ts' }
/** A guest who was not seen for so long has no token that is good any more. */
export const OLD_IDENTITIES: OldRows = { table: 'identities', ended: 'seen_ts' }
/** How long a guest is kept that has neither returned nor played. */
const UNUSED_GUEST_MS = 24 * 60 * 60_000
const IDENTITY_MS_MIN = 182 * 24 * 60 * 60_000

/**
 * `bookTime`: the clock by which lobbies, players and parties end. `isFirst`: whether this process removes for the platform.
 * The bound of explanations is kept by each process for the namespaces that it has.
 */
export function startRetention(
  ctx: Context,
  explanations: Pick<ExplanationStore, 'trim'>,
  { bookTime, isFirst }: { bookTime: () => number; isFirst: () => boolean },
): Sweeper {
  const { journal_ms, lobbies_ms, players_ms, identities_ms, rays_ms, events_ms, analytics_ms } = ctx.config.retention
  const steps: SweepStep[] = [
    { what: 'journal', remove: async () => (journal_ms === null ? 0 : removeOldJournal(ctx.pool, journal_ms)) },
    { what: 'players', remove: async () => removeEnded(ctx.pool, OLD_PLAYERS, players_ms, bookTime()) },
    { what: 'parties', remove: async () => removeEnded(ctx.pool, OLD_PARTIES, players_ms, bookTime()) },
    { what: 'waiting requests', remove: async () => removeEnded(ctx.pool, OLD_TICKETS, players_ms, bookTime()) },
    {
      what: 'explanations',
      remove: async () => (rays_ms === null ? 0 : removeOld(ctx.pool, OLD_EXPLANATIONS, ctx.now() - rays_ms)),
    },
    {
      what: 'spans of rays',
      remove: async () => (rays_ms === null ? 0 : removeOld(ctx.pool, OLD_RAY_SPANS, ctx.now() - rays_ms)),
    },
    {
      what: 'durations of finds',
      async remove() {
        const before_ms = ctx.now() - DAY_MS
        const fine = events_ms === null ? 0 : await removeOld(ctx.pool, OLD_FINDS, before_ms - events_ms)
        const all = events_ms === null ? 0 : await removeOld(ctx.pool, OLD_PLATFORM_FINDS, before_ms - events_ms)
        const coarse = analytics_ms === null ? 0 : await removeOld(ctx.pool, OLD_FIND_HOURS, before_ms - analytics_ms)
        return fine + all + coarse
      },
    },
    {
      what: 'waits for matches',
      async remove() {
        const before_ms = ctx.now() - DAY_MS
        const fine = events_ms === null ? 0 : await removeOld(ctx.pool, OLD_MATCH_WAITS, before_ms - events_ms)
        const coarse =
          analytics_ms === null ? 0 : await removeOld(ctx.pool, OLD_MATCH_WAIT_HOURS, before_ms - analytics_ms)
        return fine + coarse
      },
    },
    { what: 'lobbies', remove: async () => removeEnded(ctx.pool, OLD_LOBBIES, lobbies_ms, bookTime()) },
    {
      what: 'unused guests',
      remove: async () => removeOld(ctx.pool, UNUSED_GUESTS, ctx.now() - UNUSED_GUEST_MS),
    },
    {
      what: 'identities',
      remove: async () =>
        identities_ms === null
          ? 0
          : removeOld(ctx.pool, OLD_IDENTITIES, ctx.now() - Math.max(identities_ms, IDENTITY_MS_MIN)),
    },
  ]
  return startSweeper(ctx, 'matchmaker', SWEEP_EVERY_MS, [
    ...steps.map(({ what, remove }) => ({ what, remove: async () => (isFirst() ? remove() : 0) })),
    { what: 'surplus explanations', remove: () => explanations.trim() },
  ])
}

/** `kept_ms` null: they are kept forever. */
export async function removeEnded(pool: Pool, rows: OldRows, kept_ms: number | null, now_ms: number): Promise<number> {
  return kept_ms === null ? 0 : removeOld(pool, rows, now_ms - Math.max(kept_ms, MEMORY_MS))
}

export async function removeOldJournal(pool: Pool, kept_ms: number): Promise<number> {
  const { rows } = await pool.query<{ shard: number }>(OLD_SHARDS_SQL, [SHARD_COUNT - 1, kept_ms / 1_000])
  let count = 0
  for (const { shard } of rows) {
    count += await removeInBatches(async (rows_max) => {
      const { rowCount } = await pool.query(REMOVE_PAGES_SQL, [shard, kept_ms / 1_000, rows_max])
      return rowCount ?? 0
    })
  }
  return count
}

/** Shards whose first row is old. Reads one entry of an index each. */
export const OLD_SHARDS_SQL = `
  select shard from generate_series(0, $1::integer) as shards (shard)
  where (select ts from journal where journal.shard = shards.shard order by seq limit 1)
    < now() - make_interval(secs => $2)`

/** Removes those of a shard's first rows that are old and may go. Reads no more rows than it may remove. */
export const REMOVE_PAGES_SQL = `
  delete from journal
  where shard = $1 and ts < now() - make_interval(secs => $2) and seq < least(
    coalesce((select projected_seq from shards where shard = $1), 0),
    (select min(read_seq) + 1 from journal_readers where shard = $1),
    (select seq from journal where shard = $1 order by seq limit 1) + $3)`
