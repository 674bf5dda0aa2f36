// How long finds take, and how long requests waited for a match, counted by namespace, minute and step. A find adds one to a count
// in memory; the counts are added to the tables every few seconds, for the pages of games and of the platform. A crash loses the
// counts since the last write.
import type { Context } from '../../context.ts'
import { ASYNCHRONOUS } from '../../database/asynchronous.ts'
import { COUNTED_WIDTHS_S, DURATION_STEPS, MATCH_WAIT_UNIT_MS, stepOf } from '../../observe/duration-steps.ts'

const WRITE_EVERY_MS = 2_000
const MINUTE_MS = 60_000
/** Minutes that wait to be written; of more, the oldest is dropped. */
const MINUTES_MAX = 10
/** Counts of one statement. */
const ROWS_AT_ONCE_MAX = 1_000

/** Counts of a namespace by step. */
type Counts = Uint32Array
type Row = { namespace_id: string; minute_ms: number; step: number; find_count: number }

/** `what`: for the log. `unit_ms`: a step counts in it. */
type Counted = { what: string; unit_ms: number; name: string; text: string }

export type DurationCounts = {
  add: (namespace_id: string, duration_ms: number) => void
  close: () => Promise<void>
}

type CountsContext = Pick<Context, 'pool' | 'now' | 'log'>

export function countFindDurations(ctx: CountsContext): DurationCounts {
  return countDurations(ctx, { what: 'durations of finds', unit_ms: 1, name: 'find-durations', text: ADD_SQL })
}

export function countMatchWaits(ctx: CountsContext): DurationCounts {
  return countDurations(ctx, {
    ...{ what: 'waits for matches', unit_ms: MATCH_WAIT_UNIT_MS, name: 'match-waits', text: ADD_WAITS_SQL },
  })
}

function countDurations({ pool, now, log }: CountsContext, { what, unit_ms, name, text }: Counted): DurationCounts {
  /** By minute, then by namespace. */
  const waiting = new Map<number, Map<string, Counts>>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let writing: Promise<void> = Promise.resolve()

  function countsOf(minute_ms: number, namespace_id: string): Counts {
    let minute = waiting.get(minute_ms)
    if (minute === undefined) {
      if (waiting.size >= MINUTES_MAX) waiting.delete(Math.min(...waiting.keys()))
      minute = new Map()
      waiting.set(minute_ms, minute)
    }
    let counts = minute.get(namespace_id)
    if (counts === undefined) {
      counts = new Uint32Array(DURATION_STEPS)
      minute.set(namespace_id, counts)
    }
    return counts
  }

  function add(namespace_id: string, duration_ms: number): void {
    const minute_ms = Math.floor(now() / MINUTE_MS) * MINUTE_MS
    countsOf(minute_ms, namespace_id)[stepOf(duration_ms / unit_ms)]!++
    timer ??= setTimeout(write, WRITE_EVERY_MS)
  }

  function write(): void {
    timer = undefined
    writing = writing.then(writeAll)
  }

  /** What cannot be written waits for the next find. */
  async function writeAll(): Promise<void> {
    const minutes = [...waiting]
    waiting.clear()
    for (const [at, [minute_ms, counts]] of minutes.entries()) {
      const rows = rowsOf(minute_ms, counts)
      try {
        while (rows.length > 0) {
          await pool.query({
            name,
            text,
            values: columnsOf(rows.slice(0, ROWS_AT_ONCE_MAX)),
          })
          rows.splice(0, ROWS_AT_ONCE_MAX)
        }
      } catch (error) {
        log.warn({ err: error }, `the ${what} cannot be written; trying again later`)
        putBack(rows)
        for (const [other_ms, other] of minutes.slice(at + 1)) putBack(rowsOf(other_ms, other))
        return
      }
    }
  }

  function putBack(rows: readonly Row[]): void {
    for (const { namespace_id, minute_ms, step, find_count } of rows)
      countsOf(minute_ms, namespace_id)[step]! += find_count
  }

  return {
    add,
    async close() {
      clearTimeout(timer)
      write()
      await writing
    },
  }
}

/** In the order of their keys: two processes that write the same rows wait for each other, and never in a circle. */
function rowsOf(minute_ms: number, minute: ReadonlyMap<string, Counts>): Row[] {
  return [...minute]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([namespace_id, counts]) =>
      [...counts].flatMap((find_count, step) =>
        find_count === 0 ? [] : [{ namespace_id, minute_ms, step, find_count }],
      ),
    )
}

function columnsOf(rows: readonly Row[]): unknown[] {
  return [
    rows.map(({ namespace_id }) => namespace_id),
    rows.map(({ minute_ms }) => new Date(minute_ms)),
    rows.map(({ step }) => step),
    rows.map(({ find_count }) => find_count),
  ]
}

/** As below, without the platform. */
const ADD_WAITS_SQL = `
  with added as (
    select namespace_id, ts, step, match_count
    from unnest($1::uuid[], $2::timestamptz[], $3::smallint[], $4::integer[])
      as counted (namespace_id, ts, step, match_count), ${ASYNCHRONOUS}
  )
  insert into match_waits (namespace_id, width, ts, step, match_count)
  select namespace_id, width, date_bin(make_interval(secs => width), ts, 'epoch') as ts, step, match_count
  from added join namespaces using (namespace_id) cross join unnest(array[${COUNTED_WIDTHS_S.join(', ')}]) as width
  order by namespace_id, width, ts, step
  on conflict (namespace_id, width, ts, step)
    do update set match_count = match_waits.match_count + excluded.match_count`

/** A namespace may have been deleted in the meantime. The counts of the platform are those of all namespaces. */
const ADD_SQL = `
  with added as (
    select namespace_id, ts, step, find_count
    from unnest($1::uuid[], $2::timestamptz[], $3::smallint[], $4::integer[])
      as counted (namespace_id, ts, step, find_count), ${ASYNCHRONOUS}
  ),
  of_platform as (
    insert into platform_find_durations (ts, step, find_count)
    select ts, step, sum(find_count) from added group by ts, step order by ts, step
    on conflict (ts, step) do update set find_count = platform_find_durations.find_count + excluded.find_count
  )
  insert into find_durations (namespace_id, width, ts, step, find_count)
  select namespace_id, width, date_bin(make_interval(secs => width), ts, 'epoch') as ts, step, find_count
  from added join namespaces using (namespace_id) cross join unnest(array[${COUNTED_WIDTHS_S.join(', ')}]) as width
  order by namespace_id, width, ts, step
  on conflict (namespace_id, width, ts, step)
    do update set find_count = find_durations.find_count + excluded.find_count`
