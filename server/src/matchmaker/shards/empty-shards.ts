// Takes over all shards of a start that are empty, in three statements: most shards of most platforms are, and each of the
// others takes ten. A shard is empty when the tables have no row of it that is loaded, and the journal no change after them.
// The takeover row is appended right after the last row that was read, so nothing can have come between.
import type { Pool } from 'pg'
import { newId } from '../../ids.ts'
import { decodePage, encodePage } from '../../journal/pages.ts'
import { readTails } from '../../journal/read.ts'
import { areFilledSql, loadedSince } from '../projection/load.ts'
import { type Takeover, takeoverTimes } from './fence.ts'

/** Rows after the tables that are read of each shard. Where there are more, it counts as one that is not empty. */
const TAIL_ROWS_MAX = 64

export type TakenShard = { writer: string; takeover: Takeover }

type Candidate = { shard: number; projected_seq: number; last_seq: number; last_payload: Buffer | null }

/** The columns of a row are those of `Candidate`. `$1`: shards. `$2`: see areFilledSql(). */
const CANDIDATES_SQL = `
  select wanted.shard, coalesce(shards.projected_seq, 0) as projected_seq, coalesce(last.seq, 0) as last_seq,
    last.payload as last_payload
  from unnest($1::smallint[]) as wanted (shard) left join shards on shards.shard = wanted.shard left join lateral (
    select seq, payload from journal where journal.shard = wanted.shard order by seq desc limit 1
  ) as last on true
  where true <> all (${areFilledSql('wanted.shard', '$2')})
    and not exists (select from port_claims where port_claims.shard = wanted.shard and free_ms is null)
    and not exists (select from shard_room where shard_room.shard = wanted.shard
      and (cpu_micro <> 0 or memory_kb <> 0 or lobby_count <> 0))`

/** The rows that could be appended. `$1` to `$4` have an element for each. The tables have nothing to reflect of them. */
const APPEND_SQL = `
  with wanted as (
    select * from unnest($1::smallint[], $2::bigint[], $3::uuid[], $4::bytea[]) as wanted (shard, seq, writer, payload)
  ), appended as (
    insert into journal (shard, seq, writer, payload) select shard, seq, writer, payload from wanted
    where not exists (select from journal where journal.shard = wanted.shard and journal.seq > wanted.seq)
    order by shard on conflict do nothing returning shard, seq
  ), projected as (
    insert into shards (shard, projected_seq) select shard, seq from appended order by shard
    on conflict (shard) do update set projected_seq = excluded.projected_seq
      where shards.projected_seq < excluded.projected_seq
  )
  select shard from appended`

/**
 * `served`: until when each shard was served, in book time. Returns those that were empty and are this process's now. The tables
 * reflect their journals up to the takeover row.
 */
export async function takeOverEmpty(
  pool: Pool,
  served: ReadonlyMap<number, number>,
  now_ms: number,
): Promise<Map<number, TakenShard>> {
  const { rows } = await pool.query<Candidate>(CANDIDATES_SQL, [[...served.keys()], loadedSince(now_ms)])
  const behind = new Map(rows.map(({ shard, projected_seq }) => [shard, projected_seq]))
  const tails = await readTails(pool, behind, TAIL_ROWS_MAX)
  const taken = new Map<number, TakenShard>()
  const payloads: Buffer[] = []
  for (const { shard, projected_seq, last_seq, last_payload } of rows) {
    const tail = tails.get(shard) ?? []
    if (projected_seq + tail.length !== last_seq || tail.some(({ page }) => page.entries.length > 0)) continue
    const last_ms = last_payload === null ? null : decodePage(last_payload).ms
    const { ms, moved_ms } = takeoverTimes({ now_ms, served_ms: served.get(shard)!, last_ms })
    taken.set(shard, { writer: newId(now_ms), takeover: { seq: last_seq + 1, ms } })
    payloads.push(encodePage({ format: 1, ms, entries: [], moved_ms }))
  }
  if (taken.size === 0) return taken
  const all = [...taken.values()]
  const appended = await pool.query<{ shard: number }>(APPEND_SQL, [
    [...taken.keys()],
    all.map(({ takeover }) => takeover.seq),
    all.map(({ writer }) => writer),
    payloads,
  ])
  const ours = new Set(appended.rows.map(({ shard }) => shard))
  return new Map([...taken].filter(([shard]) => ours.has(shard)))
}
