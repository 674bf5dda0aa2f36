// Law L9: a run's time is not negative, begins before its lobby was ready and does not end while its players were in it.
// The bill is the sum of the runs, and does not shrink when it is read again.
import { getUsage } from '@musterhost/contract'
import type { ClientBase } from 'pg'
import type { FaultyPlatform } from '../platform.ts'
import type { Findings } from './findings.ts'

/** The kernel reports a start to 10 ms, and the time of a lobby's ready comes from another clock. */
const CLOCK_MS_MAX = 1_000
/** How often the bill is read again because a run ended meanwhile. */
const READINGS_MAX = 20
/** Longer than a run of the faults takes. */
const WINDOW_MS = 24 * 60 * 60_000

export async function checkRuns(db: ClientBase, findings: Findings): Promise<void> {
  const { rows } = await db.query<{ finding: string }>(
    `select format('L9: run %s is from %s to %s, its lobby ready at %s, stopped at %s, last connected at %s',
        r.lobby_id, r.start_ts, r.exit_ts, l.ready_ts, l.stop_ts, p.connect_ts) as finding
      from lobby_runs r join lobbies l on l.lobby_id = r.lobby_id
      left join lateral (select max(connect_ts) as connect_ts from players where lobby_id = r.lobby_id) p on true
      where r.exit_ts < r.start_ts or (l.ready_ts is not null and r.start_ts is null)
        or r.start_ts > l.ready_ts + $1::interval or r.exit_ts < p.connect_ts - $1::interval`,
    [`${CLOCK_MS_MAX} milliseconds`],
  )
  for (const { finding } of rows) findings.add(finding)
}

export async function checkBill(platform: FaultyPlatform, findings: Findings): Promise<void> {
  const { group_id } = platform.game
  for (let reading = 1; ; reading++) {
    const before = await platform.withDatabase((db) => runTime(db, group_id))
    const first = await uptimeOf(platform)
    const second = await uptimeOf(platform)
    const after = await platform.withDatabase((db) => runTime(db, group_id))
    // The end of a run is recorded a moment after it. Until then the run is billed to the present, and then to its end.
    if (before.runs !== after.runs && reading < READINGS_MAX) continue
    findings.require(
      before.core_ms <= first + 1 && first <= second && second <= after.core_ms + 1,
      `L9: the bill says ${first} and then ${second}, and the runs between ${before.core_ms} and ${after.core_ms}`,
    )
    return
  }
}

/** Core milliseconds of all runs until now, as the platform adds them up. */
async function uptimeOf({ admin, game }: FaultyPlatform): Promise<number> {
  const params = { group_id: game.group_id }
  const { games } = await admin.call(getUsage, {
    params,
    query: { query_start_ts: new Date(Date.now() - WINDOW_MS).toISOString() },
  })
  return games.flatMap(({ regions }) => regions).reduce((sum, { uptime }) => sum + uptime, 0)
}

/**
 * The same by plain counting. `runs`: which have no recorded end, and how many there are. Their number alone is the same after
 * one run has ended and another one has begun.
 */
async function runTime(db: ClientBase, group_id: string): Promise<{ core_ms: number; runs: string }> {
  const { rows } = await db.query<{ core_ms: number; runs: string }>(
    `select coalesce(sum(extract(epoch from coalesce(exit_ts, now()) - start_ts) * 1000 * cpu_cores), 0)::float8 as core_ms,
        count(*)::text || ' ' || coalesce(string_agg(lobby_id::text, ' ' order by lobby_id) filter (where exit_ts is null), '') as runs
      from lobby_runs where start_ts is not null and group_id = $1`,
    [group_id],
  )
  return rows[0]!
}
