// What every driver keeps of its lobbies: their folders, what this process knows of each run, the requests to end it, and
// its uid. A record is made by a start, or by the listing of a run that an earlier runner started. It is forgotten with the
// end of the run.
import { randomInt } from 'node:crypto'
import type { Logger } from 'pino'
import type { LogLine, LogStream } from '../../lobby-logs/files.ts'
import { EndedLogs } from '../logs/ended-logs.ts'
import { type Handle, neverRan, type Started } from './driver.ts'
import { type Ending, Endings } from './endings.ts'
import { writeEnded } from './lobby-folder.ts'
import { LobbyFolders } from './lobby-folders.ts'
import { createUids, UID_COUNT, type Uids } from './uids.ts'

export type RecordOptions = {
  now: () => number
  log: Logger
  /** How long the logs of an ended lobby are kept at most; null: no limit. */
  ended_kept_ms: number | null
  /** How much of the disk the logs of all ended lobbies take at most; null: no limit. */
  ended_bytes_max: number | null
  /** A hint that this lobby may have ended. Without it an end is found by calling `exit`. */
  onEnd?: (lobby_id: string) => void
}

/** `handle`: null while the run starts. */
export type RunRecord = { facts: { uid: number | null }; handle: Handle | null }

export abstract class LobbyRecords<Run extends RunRecord> {
  protected readonly folders: LobbyFolders
  protected readonly ended_logs: EndedLogs
  protected readonly uids: Uids = createUids(randomInt(UID_COUNT))
  /** By lobby id. */
  protected readonly runs = new Map<string, Run>()
  readonly #endings = new Endings()
  #sweeping: Promise<void> | null = null

  /** `mode`: that of a lobby's folder. */
  constructor(lobbies_folder: string, { now, log, ...limits }: RecordOptions, mode: number) {
    this.folders = new LobbyFolders(lobbies_folder, { now, log, mode })
    this.ended_logs = new EndedLogs(lobbies_folder, this.folders.unfinished, { now, ...limits })
  }

  protected abstract endRun(handle: Handle, ending: Ending): Promise<void>
  protected abstract sweepOnce(): Promise<void>
  /** Removes what a start has made. */
  protected abstract giveUp(run: Run, lobby_id: string): Promise<void>

  stop(handle: Handle, grace_ms: number): Promise<void> {
    return this.#endings.request(handle.lobby_id, grace_ms, (ending) => this.endRun(handle, ending))
  }

  note(lobby_id: string, text: string): void {
    this.folders.note(lobby_id, text)
  }

  logs(lobby_id: string, stream: LogStream, lines_max: number): Promise<LogLine[]> {
    return this.folders.lines(lobby_id, stream, lines_max)
  }

  sweep(): Promise<void> {
    this.#sweeping ??= this.sweepOnce().finally(() => {
      this.#sweeping = null
    })
    return this.#sweeping
  }

  /** Resolves after the sweep that runs now. Its failure is reported to the caller of `sweep`. */
  protected async sweepIsOver(): Promise<void> {
    await this.#sweeping?.catch(() => {})
  }

  protected makeFolder(lobby_id: string): string {
    if (this.runs.has(lobby_id)) throw new Error(`Lobby ${lobby_id} has been started before.`)
    return this.folders.make(lobby_id)
  }

  /** `launch` starts the run and sets its handle. A run that did not start leaves its exit in the folder, and no record. */
  protected async launch(lobby_id: string, folder: string, run: Run, launch: () => Promise<Started>): Promise<Started> {
    this.runs.set(lobby_id, run)
    try {
      const started = await launch()
      if ('refused' in started) {
        this.note(lobby_id, started.message)
        writeEnded(folder, neverRan(started.refused))
        await this.giveUp(run, lobby_id)
      }
      return started
    } catch (error) {
      await this.giveUp(run, lobby_id)
      writeEnded(folder, neverRan('not_started'))
      throw error
    }
  }

  /** Takes over the run of an earlier runner. */
  protected adopt(lobby_id: string, run: Run): void {
    this.runs.set(lobby_id, run)
    if (run.facts.uid !== null) this.uids.reserve(run.facts.uid)
  }

  protected forget(lobby_id: string): void {
    const uid = this.runs.get(lobby_id)?.facts.uid ?? null
    if (uid !== null) this.uids.release(uid)
    this.runs.delete(lobby_id)
  }

  protected readonly stateOf = (lobby_id: string): 'unknown' | 'starting' | 'running' => {
    const run = this.runs.get(lobby_id)
    return run === undefined ? 'unknown' : run.handle === null ? 'starting' : 'running'
  }
}
