// What a lobby's processes used over its life, stored beside its log: for each step of time, the CPU time used in it and the
// highest memory seen. The number of points is limited: beyond it, two points become one and the step doubles. So the whole
// life fits into a few kilobytes. The runner writes it (runner/lobby-metrics.ts), and the api returns it.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

export const METRICS_FILE = 'metrics.json'
/** Values of a lobby's metrics; beyond, pairs are joined. */
export const POINTS_MAX = 240
/** The first step. 240 of them are 20 minutes. */
export const STEP_MS_MIN = 5_000

/** Point `i` begins `i` steps after `start_ts`; the last one ends at `seen_ts`. */
export type RecordedMetrics = {
  start_ts: number
  step_ms: number
  /** Time of one core that each step used. */
  cpu_ms: number[]
  memory_bytes: number[]
  seen_ts: number
  seen_cpu_ms: number
  /** Bytes of each step; null, or absent, where nothing was counted, as in files of an older release. */
  bytes_in?: (number | null)[]
  bytes_out?: (number | null)[]
  /** The highest count of each step. */
  player_count?: (number | null)[]
  /** The counts of the last sample that had them. */
  seen_traffic?: Traffic
}

/** Bytes between clients and the lobby, ever. The counters begin anew after a crash of the database. */
export type Traffic = { bytes_in: number; bytes_out: number }

/** `cpu_ms`: all that was ever used. */
export type Sample = { ts: number; cpu_ms: number; memory_bytes: number; traffic?: Traffic; player_count?: number }

export function beginMetrics(start_ts: number): RecordedMetrics {
  return { start_ts, step_ms: STEP_MS_MIN, cpu_ms: [], memory_bytes: [], seen_ts: start_ts, seen_cpu_ms: 0 }
}

/**
 * Usage since the last sample is spread evenly over the time between. A sample that is not later than the last one changes
 * nothing: the machine's clock was set back.
 */
export function addSample(metrics: RecordedMetrics, sample: Sample): void {
  const { ts, cpu_ms, memory_bytes } = sample
  if (ts <= metrics.seen_ts) return
  while (ts - metrics.start_ts > POINTS_MAX * metrics.step_ms) makeCoarser(metrics)
  const { start_ts, step_ms, seen_ts } = metrics
  const used_ms = Math.max(0, cpu_ms - metrics.seen_cpu_ms)
  const carried = sample.traffic === undefined ? null : carriedSince(metrics.seen_traffic, sample.traffic)
  for (let point = Math.floor((seen_ts - start_ts) / step_ms); point * step_ms < ts - start_ts; point++) {
    const begin = Math.max(seen_ts, start_ts + point * step_ms)
    const end = Math.min(ts, start_ts + (point + 1) * step_ms)
    const share = (end - begin) / (ts - seen_ts)
    metrics.cpu_ms[point] = (metrics.cpu_ms[point] ?? 0) + used_ms * share
    metrics.memory_bytes[point] = Math.max(metrics.memory_bytes[point] ?? 0, memory_bytes)
    if (carried !== null) {
      metrics.bytes_in = added(metrics.bytes_in, point, carried.bytes_in * share)
      metrics.bytes_out = added(metrics.bytes_out, point, carried.bytes_out * share)
    }
    if (sample.player_count !== undefined) {
      metrics.player_count ??= []
      metrics.player_count[point] = Math.max(metrics.player_count[point] ?? 0, sample.player_count)
    }
  }
  if (sample.traffic !== undefined) metrics.seen_traffic = sample.traffic
  metrics.seen_ts = ts
  metrics.seen_cpu_ms = cpu_ms
}

/** A counter that is lower than before has begun anew. */
function carriedSince(seen: Traffic = { bytes_in: 0, bytes_out: 0 }, { bytes_in, bytes_out }: Traffic): Traffic {
  const is_new = bytes_in < seen.bytes_in || bytes_out < seen.bytes_out
  return is_new
    ? { bytes_in, bytes_out }
    : { bytes_in: bytes_in - seen.bytes_in, bytes_out: bytes_out - seen.bytes_out }
}

function added(points: (number | null)[] = [], point: number, value: number): (number | null)[] {
  points[point] = (points[point] ?? 0) + value
  return points
}

/** Joins each two points to one. */
export function makeCoarser(metrics: RecordedMetrics): void {
  const { cpu_ms, memory_bytes } = metrics
  metrics.step_ms *= 2
  metrics.cpu_ms = pairs(cpu_ms).map(([one, other = 0]) => one + other)
  metrics.memory_bytes = pairs(memory_bytes).map(([one, other = 0]) => Math.max(one, other))
  const { bytes_in, bytes_out, player_count } = metrics
  if (bytes_in !== undefined) metrics.bytes_in = joined(bytes_in, (one, other) => one + other)
  if (bytes_out !== undefined) metrics.bytes_out = joined(bytes_out, (one, other) => one + other)
  if (player_count !== undefined) metrics.player_count = joined(player_count, Math.max)
}

/** Two points without a value are one without a value. */
function joined(points: readonly (number | null)[], join: (one: number, other: number) => number): (number | null)[] {
  return pairs(points).map(([one = null, other = null]) =>
    one === null && other === null ? null : join(one ?? 0, other ?? 0),
  )
}

function pairs<T>(points: readonly T[]): [T, T?][] {
  return Array.from({ length: Math.ceil(points.length / 2) }, (_, at) => [points[2 * at]!, points[2 * at + 1]])
}

/** Cores that were busy on average in each point. */
export function busyCores({ start_ts, step_ms, cpu_ms, seen_ts }: RecordedMetrics): number[] {
  return cpu_ms.map((used_ms, point) => {
    const begin = start_ts + point * step_ms
    return used_ms / Math.max(1, Math.min(seen_ts, begin + step_ms) - begin)
  })
}

/** Reads the metrics in a lobby's folder; null when none are kept there. */
export async function readMetrics(folder: string): Promise<RecordedMetrics | null> {
  try {
    return JSON.parse(await readFile(join(folder, METRICS_FILE), 'utf8')) as RecordedMetrics
  } catch (error) {
    // Our own file appears by a rename, so it is whole; but after a power cut it may be empty.
    const is_none =
      error instanceof SyntaxError || (error instanceof Error && 'code' in error && error.code === 'ENOENT')
    if (is_none) return null
    throw error
  }
}
