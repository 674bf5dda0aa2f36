// The logs of ended lobbies. The folder of an ended lobby keeps its log, its metrics and its exit. They are removed when
// the configured time is over, or, oldest first, when all of them take more than the configured space.
import { readdirSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isLogFile } from '../../lobby-logs/files.ts'
import { METRICS_FILE } from '../../lobby-logs/lobby-metrics.ts'
import { isLobbyId } from '../../lobby-logs/local.ts'
import { isGone } from '../../node/procfs.ts'
import { ENDED_FILE } from '../folders/names.ts'
import type { UnfinishedLobbies } from '../folders/unfinished.ts'

/** Folders of an earlier process that one sweep measures; the next sweep continues. Bounds the time of a sweep. */
const MEASURED_MAX = 1_000
/** Folders that one sweep removes. Bounds the time of a sweep. */
const REMOVED_MAX = 1_000
/** The unit in which `stat` counts blocks. */
const BLOCK_BYTES = 512

type Limits = { now: () => number; ended_kept_ms: number | null; ended_bytes_max: number | null }
type EndedFolder = { end_ms: number; bytes: number }

export class EndedLogs {
  readonly #lobbies_folder: string
  readonly #unfinished: UnfinishedLobbies
  readonly #limits: Limits
  /** By lobby id, roughly in the order in which the lobbies ended. */
  readonly #kept = new Map<string, EndedFolder>()
  #bytes = 0
  /** Not measured yet, newest first. Ids begin with the time at which a lobby was created. */
  readonly #unmeasured: string[]

  constructor(lobbies_folder: string, unfinished: UnfinishedLobbies, limits: Limits) {
    this.#lobbies_folder = lobbies_folder
    this.#unfinished = unfinished
    this.#limits = limits
    const running = new Set(unfinished.ids())
    this.#unmeasured = readdirSync(lobbies_folder)
      .filter((name) => isLobbyId(name) && !running.has(name))
      .sort()
      .reverse()
  }

  /** Cleans the folder of a lobby without living processes. After a crash at any point it can be called again. */
  async trim(lobby_id: string): Promise<void> {
    const folder = join(this.#lobbies_folder, lobby_id)
    for (const name of await namesIn(folder)) {
      const is_kept = name === ENDED_FILE || name === METRICS_FILE || isLogFile(name)
      if (!is_kept) await rm(join(folder, name), { recursive: true, force: true })
    }
    this.#unfinished.remove(lobby_id)
    await this.#measure(lobby_id)
  }

  /** Removes the folders that exceed the limits. */
  async sweep(): Promise<void> {
    for (const lobby_id of this.#unmeasured.splice(-MEASURED_MAX).reverse()) await this.#measure(lobby_id)
    let removed = 0
    for (const [lobby_id, folder] of this.#kept) {
      if (removed === REMOVED_MAX) break
      if (!this.#isSurplus(folder)) continue
      await this.#remove(lobby_id)
      removed++
    }
  }

  async #measure(lobby_id: string): Promise<void> {
    try {
      const found = await sizeAndEnd(join(this.#lobbies_folder, lobby_id))
      this.#bytes += found.bytes - (this.#kept.get(lobby_id)?.bytes ?? 0)
      this.#kept.set(lobby_id, found)
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }

  async #remove(lobby_id: string): Promise<void> {
    await rm(join(this.#lobbies_folder, lobby_id), { recursive: true, force: true })
    this.#bytes -= this.#kept.get(lobby_id)?.bytes ?? 0
    this.#kept.delete(lobby_id)
  }

  #isSurplus({ end_ms }: EndedFolder): boolean {
    const { now, ended_kept_ms, ended_bytes_max } = this.#limits
    if (ended_bytes_max !== null && this.#bytes > ended_bytes_max) return true
    return ended_kept_ms !== null && end_ms < now() - ended_kept_ms
  }
}

/** Empty where a crash came before the folder was made. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}

/** The lobby ended when its exit was written. A lobby that never ran has no exit, so the time of its folder counts. */
async function sizeAndEnd(folder: string): Promise<EndedFolder> {
  const names = await readdir(folder)
  const [own, ...files] = await Promise.all(
    [folder, ...names.map((name) => join(folder, name))].map((path) => stat(path)),
  )
  const end = files[names.indexOf(ENDED_FILE)] ?? own!
  const blocks = [own!, ...files].reduce((sum, file) => sum + file.blocks, 0)
  return { end_ms: end.mtimeMs, bytes: blocks * BLOCK_BYTES }
}
