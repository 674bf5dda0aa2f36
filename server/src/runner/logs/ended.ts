// The logs of lobbies that have ended. Of the folder of such a lobby its log, what it used and how it ended are kept where
// they are, for the time that is set, and within the space that is set: beyond it the oldest go first.
import { readdirSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isLogFile } from '../../lobby-logs/files.ts'
import { METRICS_FILE } from '../../lobby-logs/lobby-metrics.ts'
import { isLobbyId } from '../../lobby-logs/local.ts'
import { isGone } from '../../procfs.ts'
import { ENDED_FILE } from '../drivers/lobby-folder.ts'
import type { UnfinishedLobbies } from '../drivers/unfinished.ts'

/** Folders of an earlier life that one sweep looks at; the next go on. */
const MEASURED_MAX = 1_000
/** Folders that one sweep removes. */
const REMOVED_MAX = 1_000
/** A block of the disk, as `stat` counts them. */
const BLOCK_BYTES = 512

export type EndedLogs = {
  /** Cleans up the folder of a lobby of which nothing lives any more. Broken off anywhere it can be done again. */
  take(lobby_id: string): Promise<void>
  /** Removes what is too old or too much. */
  sweep(): Promise<void>
}

type Limits = { now: () => number; ended_kept_ms: number | null; ended_bytes_max: number | null }
type Kept = { end_ms: number; bytes: number }

export function openEndedLogs(lobbies_folder: string, unfinished: UnfinishedLobbies, limits: Limits): EndedLogs {
  /** About in the order in which they ended. */
  const kept = new Map<string, Kept>()
  let bytes = 0
  /** Not looked at yet. Ids begin with the time at which a lobby was created. */
  const running = new Set(unfinished.ids())
  const unmeasured = readdirSync(lobbies_folder)
    .filter((name) => isLobbyId(name) && !running.has(name))
    .sort()
    .reverse()

  async function measure(lobby_id: string): Promise<void> {
    try {
      const found = await sizeAndEnd(join(lobbies_folder, lobby_id))
      bytes += found.bytes - (kept.get(lobby_id)?.bytes ?? 0)
      kept.set(lobby_id, found)
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }

  async function remove(lobby_id: string): Promise<void> {
    await rm(join(lobbies_folder, lobby_id), { recursive: true, force: true })
    bytes -= kept.get(lobby_id)?.bytes ?? 0
    kept.delete(lobby_id)
  }

  function isSurplus({ end_ms }: Kept): boolean {
    const { now, ended_kept_ms, ended_bytes_max } = limits
    if (ended_bytes_max !== null && bytes > ended_bytes_max) return true
    return ended_kept_ms !== null && end_ms < now() - ended_kept_ms
  }

  return {
    async take(lobby_id) {
      const folder = join(lobbies_folder, lobby_id)
      for (const name of await namesIn(folder)) {
        const is_kept = name === ENDED_FILE || name === METRICS_FILE || isLogFile(name)
        if (!is_kept) await rm(join(folder, name), { recursive: true, force: true })
      }
      unfinished.remove(lobby_id)
      await measure(lobby_id)
    },

    async sweep() {
      for (const lobby_id of unmeasured.splice(-MEASURED_MAX).reverse()) await measure(lobby_id)
      let removed = 0
      for (const [lobby_id, one] of kept) {
        if (removed === REMOVED_MAX) break
        if (!isSurplus(one)) continue
        await remove(lobby_id)
        removed++
      }
    },
  }
}

/** None where a crash came before the folder was made. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}

/** It ended when that was written down; of a lobby that never came to run there is only its folder. */
async function sizeAndEnd(folder: string): Promise<Kept> {
  const names = await readdir(folder)
  const [own, ...files] = await Promise.all(
    [folder, ...names.map((name) => join(folder, name))].map((path) => stat(path)),
  )
  const end = files[names.indexOf(ENDED_FILE)] ?? own!
  const blocks = [own!, ...files].reduce((sum, file) => sum + file.blocks, 0)
  return { end_ms: end.mtimeMs, bytes: blocks * BLOCK_BYTES }
}
