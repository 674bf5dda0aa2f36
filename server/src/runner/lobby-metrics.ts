// Samples what running lobbies use, and stores it beside their logs (lobby-logs/lobby-metrics.ts). All lobbies that are due are
// sampled together: a young one every five seconds, an older one at least every minute. The newest sample of each is in the
// table `lobby_usage`.
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import {
  addSample,
  beginMetrics,
  METRICS_FILE,
  type RecordedMetrics,
  readMetrics,
  type Sample,
  type Traffic,
} from '../lobby-logs/lobby-metrics.ts'
import { folderOfLobby } from '../lobby-logs/local.ts'
import { isGone } from '../node/procfs.ts'
import type { Driver, Handle, Usage } from './drivers/driver.ts'

/** Longest time between two samples, in milliseconds: memory that rises and falls in between is not seen. */
const SAMPLE_EVERY_MS_MAX = 60_000

/** Rows of ended runs that one sweep removes. */
const ENDED_ROWS_MAX = 10_000

/** Stores the samples of lobbies that still run: a sample may come after the end of its lobby. */
const STORE_SQL = `
  insert into lobby_usage (lobby_id, namespace_id, cpu_cores, memory_bytes)
  select lobby_id, namespace_id, used.cpu_cores, used.memory_bytes
    from unnest($1::uuid[], $2::float8[], $3::bigint[]) as used (lobby_id, cpu_cores, memory_bytes) join lobbies using (lobby_id)
    where stop_ts is null order by lobby_id
  on conflict (lobby_id) do update set cpu_cores = excluded.cpu_cores, memory_bytes = excluded.memory_bytes`

const REMOVE_SQL = `
  delete from lobby_usage where lobby_id in (
    select lobby_id from lobby_usage u
      where not exists (select from lobby_runs r where r.lobby_id = u.lobby_id and r.exit_ts is null)
      order by lobby_id limit ${ENDED_ROWS_MAX} for update skip locked
  )`

type NewestUse = { lobby_id: string; cpu_cores: number; memory_bytes: number }
type Counts = Required<Pick<Sample, 'player_count' | 'traffic'>>

export class LobbyMeter {
  readonly #ctx: Pick<Context, 'now' | 'log' | 'pool'>
  readonly #driver: Pick<Driver, 'usage'>
  readonly #lobbies_folder: string
  /** By lobby id, of the lobbies that run. */
  readonly #metrics = new Map<string, RecordedMetrics>()
  #is_sampling = false

  constructor(ctx: Context, driver: Pick<Driver, 'usage'>) {
    this.#ctx = ctx
    this.#driver = driver
    this.#lobbies_folder = join(ctx.config.data_dir, 'lobbies')
  }

  /** Samples the lobbies that are due, out of all that run. Cheap: called every second. */
  async sample(handles: readonly Handle[]): Promise<void> {
    if (this.#is_sampling) return
    this.#is_sampling = true
    try {
      await this.#sampleDue(handles)
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'usage of lobbies could not be stored')
    } finally {
      this.#is_sampling = false
    }
  }

  /** Removes what is stored of runs that have ended, on any machine. */
  async sweep(): Promise<void> {
    await this.#ctx.pool.query(REMOVE_SQL)
  }

  async #sampleDue(handles: readonly Handle[]): Promise<void> {
    const ids = new Set(handles.map(({ lobby_id }) => lobby_id))
    for (const lobby_id of this.#metrics.keys()) if (!ids.has(lobby_id)) this.#metrics.delete(lobby_id)
    const ts = this.#ctx.now()
    const due: Handle[] = []
    for (const handle of handles) if (isDue(await this.#metricsOf(handle), ts)) due.push(handle)
    if (due.length === 0) return
    const usage = await this.#driver.usage(due)
    const counts = await this.#countsOf(due)
    const newest: NewestUse[] = []
    for (const { lobby_id } of due) {
      const used = usage.get(lobby_id)
      const metrics = this.#metrics.get(lobby_id)
      if (used === undefined || metrics === undefined) continue
      newest.push({ lobby_id, cpu_cores: busyCoresSince(metrics, ts, used), memory_bytes: used.memory_bytes })
      addSample(metrics, { ts, ...used, ...counts.get(lobby_id) })
      await write(folderOfLobby(this.#lobbies_folder, lobby_id), metrics)
    }
    if (newest.length > 0) await this.#store(newest)
  }

  /** For the pages that show all running lobbies. The files beside the logs have the whole life of each. */
  async #store(newest: readonly NewestUse[]): Promise<void> {
    await this.#ctx.pool.query({
      name: 'lobby-usage',
      text: STORE_SQL,
      values: [
        newest.map(({ lobby_id }) => lobby_id),
        newest.map(({ cpu_cores }) => cpu_cores),
        newest.map(({ memory_bytes }) => memory_bytes),
      ],
    })
  }

  /** Players and traffic, as the matchmaker and the edges report them. Without the database: none, for this sample. */
  async #countsOf(handles: readonly Handle[]): Promise<Map<string, Counts>> {
    try {
      const { rows } = await this.#ctx.pool.query<{ lobby_id: string; player_count: number } & Traffic>({
        name: 'lobby-counts',
        text: `select lobby_id, player_count, coalesce(bytes_in, 0) as bytes_in, coalesce(bytes_out, 0) as bytes_out
          from lobbies left join lobby_traffic using (lobby_id) where lobby_id = any($1)`,
        values: [handles.map(({ lobby_id }) => lobby_id)],
      })
      return new Map(
        rows.map(({ lobby_id, player_count, ...traffic }) => [lobby_id, { player_count, traffic }] as const),
      )
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'players and traffic of lobbies could not be read')
      return new Map()
    }
  }

  async #metricsOf({ lobby_id, start_ts }: Handle): Promise<RecordedMetrics> {
    const known = this.#metrics.get(lobby_id) ?? (await readMetrics(folderOfLobby(this.#lobbies_folder, lobby_id)))
    const metrics = known ?? beginMetrics(start_ts)
    this.#metrics.set(lobby_id, metrics)
    return metrics
  }
}

function busyCoresSince({ seen_ts, seen_cpu_ms }: RecordedMetrics, ts: number, { cpu_ms }: Usage): number {
  return Math.max(0, cpu_ms - seen_cpu_ms) / Math.max(1, ts - seen_ts)
}

/** True in the first second of a lobby, and then whenever a step of the clock is over. */
function isDue({ start_ts, step_ms, seen_ts }: RecordedMetrics, ts: number): boolean {
  const every_ms = Math.min(step_ms, SAMPLE_EVERY_MS_MAX)
  return seen_ts === start_ts || Math.floor(ts / every_ms) > Math.floor(seen_ts / every_ms)
}

/** Replaces the file in one step. The lobby may have ended meanwhile, and its folder may be removed. */
async function write(folder: string, metrics: RecordedMetrics): Promise<void> {
  const path = join(folder, METRICS_FILE)
  try {
    await writeFile(`${path}.new`, JSON.stringify(metrics), { mode: 0o600 })
    await rename(`${path}.new`, path)
  } catch (error) {
    if (!isGone(error)) throw error
  }
}
