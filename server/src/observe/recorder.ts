// Which rays are kept, of all that pass by: those that failed, were slow, or tell of a start; of the others a few a
// second. Gathered in memory and written in batches, off the way of the requests; what comes faster than it can be
// written, or too fast from one owner, is not kept. A ray has a part for each role that it went through, and each
// role writes its own.
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import { ASYNCHRONOUS } from '../database/asynchronous.ts'
import { BatchWriter } from '../flow/batch-writer.ts'
import { busyMs, LABEL_LENGTH_MAX, openRay, type Ray, type RayOwner, type RayService } from './ray.ts'

/** A request that is busy for longer is slow. */
export const SLOW_MS = 500
const FLUSH_EVERY_MS = 1_000
/** Parts of rays that wait to be written; further ones are dropped. */
const GATHERED_MAX = 500
/** Rays of one owner that are kept in a second: those of failures, slow requests and starts. */
const OWNER_RAYS_MAX = 20
/** Parts of rays of one owner that are kept. The oldest are removed. */
export const OWNER_PARTS_MAX = 10_000
const TRIM_EVERY_MS = 60_000
/** Owner id of rays without an owner. */
const NOBODY = '00000000-0000-0000-0000-000000000000'

/** A service's part of a ray, as it is written and read. Offsets are microseconds after `ts_us`. */
export type RayPart = {
  ray_id: string
  service: RayService
  operation: string
  owner: RayOwner
  player_id: string | null
  /** It was refused with this. */
  code: string | null
  /** Microseconds since the epoch. */
  ts_us: number
  duration_us: number
  /** Label, begin, end. */
  spans: [string, number, number][]
  /** Label, moment, and the other ray that it is about. */
  marks: [string, number, string?][]
}

export type Recorder = {
  /** Null: none are kept. */
  open: (...asked: Parameters<typeof openRay>) => Ray | null
  /** Ends the ray; `code`: of the error that was returned, if any. Returns whether the ray is kept. */
  end: (ray: Ray | null, code: string | null) => boolean
  /** Is shown every part that is kept. Ends with the function that it answers. */
  onRay: (watcher: (part: RayPart) => void) => () => void
  /** Resolves when everything that is kept so far has been written, or could not be. */
  flush: () => Promise<void>
  /** Removes what is too much of the owners that have been written of. */
  trim: () => Promise<void>
  close: () => Promise<void>
}

export type RecorderOptions = {
  pool: Pool
  log: Logger
  now: () => number
  /** Ordinary requests that are kept in a second; null: no rays at all. */
  rays_per_second: number | null
}

export function createRecorder({ pool, log, now, rays_per_second }: RecorderOptions): Recorder {
  const wallUs = createWallClock(now)
  const watchers = new Set<(part: RayPart) => void>()
  let second_end = 0
  let ordinary_count = 0
  const owner_counts = new Map<string, number>()
  let grown = new Set<string>()
  const writer = new BatchWriter<RayPart>({
    every_ms: FLUSH_EVERY_MS,
    items_max: GATHERED_MAX,
    async write(batch) {
      await pool.query({ name: 'ray-parts', text: INSERT_SQL, values: [rowsOf(batch)] })
      for (const { owner } of batch) grown.add(owner?.id ?? NOBODY)
    },
    onDropped: (dropped_count) => log.warn({ dropped_count }, 'parts of rays are dropped: more than can be written'),
    onFailure: (error, count) => log.warn({ err: error, count }, 'parts of rays are dropped: they cannot be written'),
  })
  const trimming = setInterval(() => {
    trim().catch((error: unknown) =>
      log.warn({ err: error }, 'old parts of rays cannot be removed; trying again later'),
    )
  }, TRIM_EVERY_MS)

  /** Within what may be kept in this second. */
  function isKept(ray: Ray, code: string | null, end: number): boolean {
    if (end >= second_end) {
      second_end = end + 1_000
      ordinary_count = 0
      owner_counts.clear()
    }
    if (ordinary_count < (rays_per_second ?? 0)) {
      ordinary_count++
      return true
    }
    if (code === null && !ray.is_wanted && (end - ray.times[0]! < SLOW_MS || busyMs(ray, end) < SLOW_MS)) return false
    const owner = ray.owner?.id ?? NOBODY
    const count = (owner_counts.get(owner) ?? 0) + 1
    owner_counts.set(owner, count)
    return count <= OWNER_RAYS_MAX
  }

  function keep(part: RayPart): void {
    for (const watcher of watchers) watcher(part)
    writer.add(part)
  }

  async function trim(): Promise<void> {
    if (grown.size === 0) return
    const owner_ids = [...grown]
    grown = new Set()
    await pool.query(TRIM_SQL, [owner_ids, OWNER_PARTS_MAX])
  }

  return {
    open: (...asked) => (rays_per_second === null ? null : openRay(...asked)),
    end(ray, code) {
      if (ray === null) return false
      const end = performance.now()
      if (!isKept(ray, code, end)) return false
      keep(partOf(ray, code, end, wallUs))
      return true
    },
    onRay(watcher) {
      watchers.add(watcher)
      return () => void watchers.delete(watcher)
    },
    flush: () => writer.flush(),
    trim,
    async close() {
      clearInterval(trimming)
      await writer.close()
    },
  }
}

/**
 * Converts the process's own clock to the platform's. The platform's clock has milliseconds, and tests move it. The process's
 * clock has fractions and is monotonic. Their difference is known to one millisecond, and is corrected only beyond that.
 */
function createWallClock(now: () => number): (at: number) => number {
  let ahead_ms = 0
  return (at) => {
    const least_ms = now() - (performance.timeOrigin + performance.now())
    ahead_ms = Math.min(Math.max(ahead_ms, least_ms), least_ms + 1)
    return Math.round((performance.timeOrigin + at + ahead_ms) * 1_000)
  }
}

function partOf(ray: Ray, code: string | null, end: number, wallUs: (at: number) => number): RayPart {
  const { ray_id, service, operation, owner, player_id, times, labels } = ray
  const start = times[0]!
  const since = (at: number): number => Math.round((at - start) * 1_000)
  const spans = times.map((from, index): RayPart['spans'][number] => {
    return [briefly(labels[index]!), since(from), since(times[index + 1] ?? end)]
  })
  const marks = (ray.marks ?? []).map(({ label, at, ray_id: other }): RayPart['marks'][number] => {
    return other === null ? [briefly(label), since(at)] : [briefly(label), since(at), other]
  })
  if (ray.left_out > 0 || [...labels, ...(ray.marks ?? []).map(({ label }) => label)].some(isLong)) {
    marks.push(['truncated', since(end)])
  }
  const whose = { ray_id, service, operation, owner, player_id }
  return { ...whose, code, ts_us: wallUs(start), duration_us: since(end), spans, marks }
}

const isLong = (label: string): boolean => label.length > LABEL_LENGTH_MAX
const briefly = (label: string): string => (isLong(label) ? label.slice(0, LABEL_LENGTH_MAX) : label)

function rowsOf(parts: readonly RayPart[]): string {
  return JSON.stringify(
    parts.map(({ owner, ...part }) => ({ ...part, owner_kind: owner?.kind ?? null, owner_id: owner?.id ?? NOBODY })),
  )
}

const INSERT_SQL = `
  insert into ray_spans (ray_id, service, operation, code, owner_kind, owner_id, player_id, ts, duration_us, spans, marks)
  select ray_id, service, operation, code, owner_kind, owner_id, player_id,
    'epoch'::timestamptz + ts_us * interval '1 microsecond', duration_us, spans, marks
  from json_to_recordset($1) as part (
    ray_id uuid, service text, operation text, code text, owner_kind text, owner_id uuid, player_id uuid, ts_us bigint,
    duration_us bigint, spans jsonb, marks jsonb
  ), ${ASYNCHRONOUS}`

const TRIM_SQL = `
  delete from ray_spans using (
    select grown.owner_id, oldest.ts
    from unnest($1::uuid[]) as grown (owner_id), lateral (
      select ts from ray_spans where ray_spans.owner_id = grown.owner_id
      order by ts desc offset $2 limit 1
    ) as oldest
  ) as too_many
  where ray_spans.owner_id = too_many.owner_id and ray_spans.ts <= too_many.ts`
