// Probes of the api role while a game has a status page: whether the database responds, a matchmaker serves the namespace, and
// a runner of each region reports. One query covers all pages. Outcomes are kept in memory until their minute is measured.
import { setTimeout as delay } from 'node:timers/promises'
import { STATUS_PAGES_MAX } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { shardOf } from '../../journal/pages.ts'
import { isFreshSql } from '../nodes/freshness.ts'
import { MINUTE_MS, type ProbeCount } from './minutes.ts'

/** A probe without a response for so long has failed. */
const PROBE_MS_MAX = 5_000
/** Minutes whose probes are kept: what an outage of a day needs. */
const MINUTES_MAX = 1_440

type Served = { pages: { game_id: string; namespace_id: string }[]; shards: number[]; regions: string[] }
/** Failures of all parts, of namespaces, and of regions. */
type Counted = { probe_count: number; away_count: number; unserved: Map<string, number>; absent: Map<string, number> }

export type Probes = {
  /** Resolves with the number of enabled pages; null: the database did not respond. */
  probe: () => Promise<number | null>
  /** Probes of a namespace, or of a region for it. Undefined: this process made no probe in the minute. */
  of: (minute_ms: number, part: { namespace_id: string; region: string }) => ProbeCount | undefined
  /** Drops the minutes before. */
  forget: (before_ms: number) => void
}

export function createProbes(ctx: Pick<Context, 'pool' | 'now' | 'config'>, probe_ms_max = PROBE_MS_MAX): Probes {
  const minutes = new Map<number, Counted>()
  let under_way: Promise<unknown> | null = null

  function minuteAt(ms: number): Counted {
    const minute_ms = Math.floor(ms / MINUTE_MS) * MINUTE_MS
    let counted = minutes.get(minute_ms)
    if (counted === undefined) {
      if (minutes.size >= MINUTES_MAX) minutes.delete(Math.min(...minutes.keys()))
      counted = { probe_count: 0, away_count: 0, unserved: new Map(), absent: new Map() }
      minutes.set(minute_ms, counted)
    }
    return counted
  }

  function count(at_ms: number, served: Served | null): void {
    const counted = minuteAt(at_ms)
    counted.probe_count++
    if (served === null) {
      counted.away_count++
      return
    }
    for (const { namespace_id } of served.pages) {
      if (!served.shards.includes(shardOf(namespace_id))) add(counted.unserved, namespace_id)
    }
    for (const { name } of ctx.config.regions) if (!served.regions.includes(name)) add(counted.absent, name)
  }

  /** A query that hangs is not followed by another one. */
  async function read(): Promise<Served | null> {
    if (under_way !== null) return null
    const reading = ctx.pool
      .query<Served>({ name: 'status-probe', text: PROBE_SQL })
      .then(({ rows }) => rows[0]!)
      .catch(() => null)
      .finally(() => {
        under_way = null
      })
    under_way = reading
    return Promise.race([reading, delay(probe_ms_max, null, { ref: false })])
  }

  return {
    async probe() {
      const at_ms = ctx.now()
      const served = await read()
      count(at_ms, served)
      return served === null ? null : served.pages.length
    },
    of(minute_ms, { namespace_id, region }) {
      const counted = minutes.get(minute_ms)
      if (counted === undefined) return undefined
      const { probe_count, away_count, unserved, absent } = counted
      const failed = region === '' ? unserved.get(namespace_id) : absent.get(region)
      return { probe_count, failed_count: away_count + (failed ?? 0) }
    },
    forget(before_ms) {
      for (const minute_ms of minutes.keys()) if (minute_ms < before_ms) minutes.delete(minute_ms)
    },
  }
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

const PROBE_SQL = `
  select
    coalesce((select json_agg(page) from (
      select game_id, namespace_id from status_pages where is_enabled order by game_id limit ${STATUS_PAGES_MAX}
    ) as page), '[]') as pages,
    array(select shard from shard_leases join matchmakers using (writer)
      where shard_leases.is_served and ${isFreshSql('matchmakers.seen_ts')}) as shards,
    array(select distinct unnest(regions) from runners
      where refusal is null and ${isFreshSql('ts')}) as regions`
