// Samples what running lobbies use, and stores it beside their logs (lobby-logs/lobby-metrics.ts). All lobbies that are due are
// sampled together: a young one every five seconds, an older one at least every minute.
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import {
  addSample,
  beginMetrics,
  type LobbyMetrics,
  METRICS_FILE,
  readMetrics,
  type Sample,
  type Traffic,
} from '../lobby-logs/lobby-metrics.ts'
import { folderOfLobby } from '../lobby-logs/local.ts'
import { isGone } from '../procfs.ts'
import type { Driver, Handle } from './drivers/driver.ts'

/** Longest time between two samples, in milliseconds: memory that rises and falls in between is not seen. */
const SAMPLE_EVERY_MS_MAX = 60_000

type Counts = Required<Pick<Sample, 'player_count' | 'traffic'>>

export class LobbyMeter {
  readonly #ctx: Pick<Context, 'now' | 'log' | 'pool'>
  readonly #driver: Pick<Driver, 'usage'>
  readonly #lobbies_folder: string
  /** By lobby id, of the lobbies that run. */
  readonly #metrics = new Map<string, LobbyMetrics>()
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

  async #sampleDue(handles: readonly Handle[]): Promise<void> {
    const ids = new Set(handles.map(({ lobby_id }) => lobby_id))
    for (const lobby_id of this.#metrics.keys()) if (!ids.has(lobby_id)) this.#metrics.delete(lobby_id)
    const ts = this.#ctx.now()
    const due: Handle[] = []
    for (const handle of handles) if (isDue(await this.#metricsOf(handle), ts)) due.push(handle)
    if (due.length === 0) return
    const usage = await this.#driver.usage(due)
    const counts = await this.#countsOf(due)
    for (const { lobby_id } of due) {
      const used = usage.get(lobby_id)
      const metrics = this.#metrics.get(lobby_id)
      if (used === undefined || metrics === undefined) continue
      addSample(metrics, { ts, ...used, ...counts.get(lobby_id) })
      await write(folderOfLobby(this.#lobbies_folder, lobby_id), metrics)
    }
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

  async #metricsOf({ lobby_id, start_ts }: Handle): Promise<LobbyMetrics> {
    const known = this.#metrics.get(lobby_id) ?? (await readMetrics(folderOfLobby(this.#lobbies_folder, lobby_id)))
    const metrics = known ?? beginMetrics(start_ts)
    this.#metrics.set(lobby_id, metrics)
    return metrics
  }
}

/** True in the first second of a lobby, and then whenever a step of the clock is over. */
function isDue({ start_ts, step_ms, seen_ts }: LobbyMetrics, ts: number): boolean {
  const every_ms = Math.min(step_ms, SAMPLE_EVERY_MS_MAX)
  return seen_ts === start_ts || Math.floor(ts / every_ms) > Math.floor(seen_ts / every_ms)
}

/** Replaces the file in one step. The lobby may have ended meanwhile, and its folder may be removed. */
async function write(folder: string, metrics: LobbyMetrics): Promise<void> {
  const path = join(folder, METRICS_FILE)
  try {
    await writeFile(`${path}.new`, JSON.stringify(metrics), { mode: 0o600 })
    await rename(`${path}.new`, path)
  } catch (error) {
    if (!isGone(error)) throw error
  }
}
