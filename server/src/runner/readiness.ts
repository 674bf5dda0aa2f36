// Sees when servers are ready that do not call it themselves: by a connection to their ports, or by a line of their log, as the
// version config says. The run's row then says so, and the matchmaker decides (matchmaker/watch/runs.ts). The timer runs
// only while such a server starts.
//
// After a restart of the runner a log is read again from its start. Expressions are run by an engine whose time grows with
// the line only (contract/src/line-expression.ts). A check takes at most a share of the runner's time.
import { type LineExpression, readLineExpression } from '@musterhost/contract'
import type { Context } from '../context.ts'
import { createPoller, type Poller } from '../database/poller.ts'
import { createTimerWhileNeeded, type TimerWhileNeeded } from '../flow/timer-while-needed.ts'
import { LOG_STREAMS, type LogStream } from '../lobby-logs/files.ts'
import { LOG_START, type LogPosition } from '../lobby-logs/read.ts'
import type { Driver } from './drivers/driver.ts'
import type { Run } from './launch.ts'
import { listeningOf } from './listening.ts'
import { PLATFORM_MARK } from './logs/lines.ts'
import type { Reachability } from './reachability.ts'
import { recordReady } from './rows.ts'

/** Players wait for it. */
const CHECK_EVERY_MS = 100
/** Runs in one check. The following checks take the others. */
const RUNS_MAX = 16
/** Lines of one stream in one check of a run: about 5 ms of the slowest expression. */
const LINES_MAX = 100
/** Bounds the share of the runner's time: after checks that took 20 ms there is none for 200 ms. */
const PAUSE_PER_CHECK = 10

export type WatchedRun = Pick<Run, 'handle' | 'ports' | 'ready_check'> & { is_seen_ready: boolean }

/** What is known of the log of a run. */
type LogScan = { expression: LineExpression; places: Record<LogStream, LogPosition> }

export class ReadinessWatch {
  readonly #ctx: Context
  readonly #driver: Pick<Driver, 'listening'>
  readonly #reach: Reachability
  readonly #starting: () => readonly WatchedRun[]
  readonly #poller: Poller
  readonly #timer: TimerWhileNeeded
  /** By lobby id, of runs that wait for a line. */
  #scans = new Map<string, LogScan>()
  #next = 0
  #check_again_ms = 0

  /** `starting`: the runs whose servers are not known to be ready. */
  constructor(
    ctx: Context,
    driver: Pick<Driver, 'listening'>,
    reach: Reachability,
    starting: () => readonly WatchedRun[],
  ) {
    this.#ctx = ctx
    this.#driver = driver
    this.#reach = reach
    this.#starting = starting
    this.#poller = createPoller(ctx, {
      run: () => this.#checkSome(),
      failure: 'servers that are starting could not be checked; retrying',
    })
    this.#timer = createTimerWhileNeeded(CHECK_EVERY_MS, () => {
      const is_needed = this.#waiting().length > 0
      if (is_needed && performance.now() >= this.#check_again_ms) this.#poller.wake()
      if (!is_needed) this.#scans.clear()
      return is_needed
    })
  }

  /** A run has begun or was taken over. */
  need(): void {
    if (this.#waiting().length > 0) this.#timer.need()
  }

  async close(): Promise<void> {
    this.#timer.close()
    await this.#poller.close()
  }

  #waiting(): WatchedRun[] {
    return this.#starting().filter(({ ready_check }) => ready_check !== null)
  }

  async #checkSome(): Promise<void> {
    const began_ms = performance.now()
    const waiting = this.#waiting()
    const ids = new Set(waiting.map(({ handle }) => handle.lobby_id))
    for (const lobby_id of this.#scans.keys()) if (!ids.has(lobby_id)) this.#scans.delete(lobby_id)
    const count = Math.min(RUNS_MAX, waiting.length)
    for (let checked = 0; checked < count; checked++) await this.#check(waiting[this.#next++ % waiting.length]!)
    this.#check_again_ms = performance.now() + (performance.now() - began_ms) * PAUSE_PER_CHECK
  }

  async #check(run: WatchedRun): Promise<void> {
    const { lobby_id } = run.handle
    if (run.is_seen_ready || !(await this.#isReady(run))) return
    await recordReady(this.#ctx, lobby_id)
    run.is_seen_ready = true
    this.#scans.delete(lobby_id)
    this.#ctx.log.info({ lobby_id, ready_check: run.ready_check }, 'server of a lobby was seen to be ready')
  }

  async #isReady(run: WatchedRun): Promise<boolean> {
    if (run.ready_check === null) return false
    if (run.ready_check === 'listening') {
      const { open, shut } = await listeningOf(run, await this.#driver.listening(run.handle), this.#reach)
      return shut.length === 0 && open.length > 0
    }
    return this.#hasLine(run.handle.lobby_id, run.ready_check.log)
  }

  async #hasLine(lobby_id: string, text: string): Promise<boolean> {
    const scan = this.#scans.get(lobby_id) ?? {
      expression: readLineExpression(text),
      places: { stdout: LOG_START, stderr: LOG_START },
    }
    this.#scans.set(lobby_id, scan)
    for (const stream of LOG_STREAMS) {
      const read = await this.#ctx.lobby_logs.after(lobby_id, stream, scan.places[stream], LINES_MAX)
      scan.places[stream] = read.end
      const lines = read.lines.map(({ bytes }) => bytes.toString())
      if (lines.some((line) => !line.startsWith(PLATFORM_MARK) && scan.expression.matches(line))) return true
    }
    return false
  }
}
