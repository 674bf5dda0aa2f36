// What the lobbies that run here use, looked at now and then and kept beside their logs (lobby-logs/lobby-metrics.ts). All that
// are due are looked at in the same moment, the young ones each five seconds, the older ones each minute at least.
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { addSample, beginMetrics, type LobbyMetrics, METRICS_FILE, readMetrics } from '../lobby-logs/lobby-metrics.ts'
import { folderOfLobby } from '../lobby-logs/local.ts'
import { isGone } from '../procfs.ts'
import type { Driver, Handle } from './drivers/driver.ts'

/** However long its steps have become: between two looks memory may come and go unseen. */
const LOOK_EVERY_MS_MAX = 60_000

export type LobbyMeter = {
  /** Of all that run here; cheap, to be called every second. */
  look(handles: readonly Handle[]): Promise<void>
}

export function createLobbyMeter({ config, now, log }: Context, driver: Pick<Driver, 'usage'>): LobbyMeter {
  const lobbies_folder = join(config.data_dir, 'lobbies')
  const known = new Map<string, LobbyMetrics>()
  let looking = false

  async function metricsOf({ lobby_id, start_ts }: Handle): Promise<LobbyMetrics> {
    const metrics = known.get(lobby_id) ?? (await readMetrics(folderOfLobby(lobbies_folder, lobby_id)))
    const found = metrics ?? beginMetrics(start_ts)
    known.set(lobby_id, found)
    return found
  }

  async function lookAt(handles: readonly Handle[]): Promise<void> {
    const ids = new Set(handles.map(({ lobby_id }) => lobby_id))
    for (const lobby_id of known.keys()) if (!ids.has(lobby_id)) known.delete(lobby_id)
    const ts = now()
    const due: Handle[] = []
    for (const handle of handles) if (isDue(await metricsOf(handle), ts)) due.push(handle)
    const usage = due.length === 0 ? new Map() : driver.usage(due)
    for (const { lobby_id } of due) {
      const used = usage.get(lobby_id)
      const metrics = known.get(lobby_id)
      if (used === undefined || metrics === undefined) continue
      addSample(metrics, { ts, ...used })
      await write(folderOfLobby(lobbies_folder, lobby_id), metrics)
    }
  }

  return {
    async look(handles) {
      if (looking) return
      looking = true
      try {
        await lookAt(handles)
      } catch (error) {
        log.warn({ err: error }, 'what lobbies use could not be kept')
      } finally {
        looking = false
      }
    },
  }
}

/** In the first second of its life, and from then on whenever a step of the clock is over. */
function isDue({ start_ts, step_ms, seen_ts }: LobbyMetrics, ts: number): boolean {
  const every_ms = Math.min(step_ms, LOOK_EVERY_MS_MAX)
  return seen_ts === start_ts || Math.floor(ts / every_ms) > Math.floor(seen_ts / every_ms)
}

/** It appears whole. The lobby may have ended meanwhile, and its folder be gone. */
async function write(folder: string, metrics: LobbyMetrics): Promise<void> {
  const path = join(folder, METRICS_FILE)
  try {
    await writeFile(`${path}.new`, JSON.stringify(metrics), { mode: 0o600 })
    await rename(`${path}.new`, path)
  } catch (error) {
    if (!isGone(error)) throw error
  }
}
