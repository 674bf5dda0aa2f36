// The reconcile loop: what is wanted (rows of `lobbies`) against what runs (the driver, and our rows of `lobby_runs`).
// It passes at every wake-up and every second, one pass at a time; what takes time (a start, an unpacking, an ending)
// goes on beside the passes and wakes the loop when it is done. A run is:
//
//   wanted -> starting (row, process) -> running -> ending (no longer wanted) -> ended (exit recorded)
//
// A row of ours with neither a process nor a start under way is settled: a crash came between the row and the process,
// or the answer to a write was lost. One lobby is started once; whatever becomes of it, it is never tried again.
import type { Context } from '../context.ts'
import { createPoller } from '../database/poller.ts'
import { seatsWarning, stopWarning } from '../lobby-logs/connection-warnings.ts'
import { logTail } from '../lobby-logs/tail.ts'
import type { BuildState, Builds } from './builds.ts'
import type { Driver, Exit } from './drivers/driver.ts'
import { inheritFormerRuns } from './inherit.ts'
import { buildIdOf, type Launch, launchLobby, portsOf, type Run, refuse } from './launch.ts'
import { watchListening } from './listening.ts'
import { createLobbyMeter } from './lobby-metrics.ts'
import type { Ports } from './ports.ts'
import { claimRuns, type OpenRun, readOpenRuns, readWanted, recordExit, recordStart, type WantedLobby } from './rows.ts'
import { type StallRun, watchStalls } from './stalls.ts'
import type { StartRays } from './start-rays.ts'

/** Starts under way at once. More make none of them faster. */
const START_CONCURRENCY_MAX = 8
/** Wanted lobbies looked at in one pass. */
const WANTED_MAX = 64
/** From SIGTERM to SIGKILL, for a lobby that is no longer wanted, and when the whole platform ends. */
const RUN_GRACE_MS = 30_000
const SHUTDOWN_GRACE_MS = 5_000
/** Lines of one lobby's log that warn of expired seats. */
const SEAT_WARNINGS_MAX = 20

/** A run with what the loop does to it. */
type Watched = StallRun &
  Run & {
    is_ready: boolean
    is_ending: boolean
    is_recorded: boolean
    settling: Promise<void> | null
    warnings: SeatWarnings
  }
/** Expired seats that the lobby's log has warned of, and in how many lines. */
type SeatWarnings = { seats: number; lines: number }

const NEW_RUN = { is_stalled: false, is_ready: false, seats_expired_while_connected: 0 }

export type Loop = {
  /** There may be something to do. Cheap, and never waits. */
  wake(): void
  /** Finds what lives from before, and takes it over. Before the first wake. */
  adopt(): Promise<void>
  /** Starts nothing any more, and waits for what is under way. */
  close(): Promise<void>
  /** Every second: looks at what all that runs uses, where it is time to, and at which servers do not answer. */
  measure(): void
  /** Now and then: removes what nobody needs any more. */
  sweep(): Promise<void>
  /** After close: ends everything that runs, and records it. */
  endAll(): Promise<void>
}

export function createLoop(ctx: Context, driver: Driver, builds: Builds, ports: Ports, rays: StartRays): Loop {
  const { metrics } = ctx
  const launch: Launch = { ctx, driver, builds, ports }
  const meter = createLobbyMeter(ctx, driver)
  const runs = new Map<string, Watched>()
  const starting = new Map<string, Promise<void>>()
  const stalls = watchStalls(ctx, driver, () => [...runs.values()])
  const listening = watchListening(ctx, driver, () =>
    [...runs.values()].filter(({ is_ready, is_ending }) => !is_ready && !is_ending),
  )
  let is_closed = false
  const { wake, close } = createPoller(ctx, {
    look: pass,
    // The database is away, most likely. The next pass is a second off.
    failure: 'the runner could not compare what is wanted with what runs',
  })
  metrics.gauge('runs', 'Lobbies whose process lives here.', [], (tell) => tell(runs.size))

  const tailOf = (lobby_id: string): Promise<string[]> =>
    logTail((stream, lines_max) => driver.logs(lobby_id, stream, lines_max))

  async function pass(): Promise<void> {
    for (const lobby of await readWanted(ctx, WANTED_MAX)) beginStart(lobby)
    for (const row of await readOpenRuns(ctx)) await compare(row)
    for (const run of runs.values()) void settle(run)
  }

  function beginStart(lobby: WantedLobby): void {
    const { lobby_id } = lobby
    if (is_closed || starting.size >= START_CONCURRENCY_MAX || starting.has(lobby_id) || runs.has(lobby_id)) return
    const build_id = buildIdOf(lobby)
    const build: BuildState =
      build_id === null ? { failure: 'The game mode has no build.', reason: 'no_build' } : builds.find(build_id)
    if (build === 'unpacking') return
    const ray = rays.open(lobby)
    const since = performance.now()
    const done =
      'failure' in build ? refuse(launch, lobby, build.reason, build.failure) : launchLobby(launch, lobby, build, ray)
    const settled = done
      .then((run) => {
        rays.started(ray, run)
        metrics.run_starts.inc({ result: run === null ? 'refused' : 'started' })
        if (run === null) return
        const start_ms = performance.now() - since
        metrics.run_start_seconds.observe(start_ms / 1_000)
        watch(run)
        ctx.log.info({ lobby_id, start_ms: Math.round(start_ms) }, 'a lobby has been started')
      })
      .catch((error) => {
        metrics.run_starts.inc({ result: 'failed' })
        ctx.log.error({ err: error, lobby_id }, 'a lobby could not be started')
      })
      .finally(() => {
        starting.delete(lobby_id)
        // There may be more than could be started at once, and a new run's start is to be told.
        wake()
      })
    starting.set(lobby_id, settled)
  }

  function watch(run: Run, { is_stalled, is_ready, seats_expired_while_connected: seats } = NEW_RUN): Watched {
    const warnings = { seats, lines: 0 }
    const watched = { ...run, is_stalled, is_ready, is_ending: false, is_recorded: false, settling: null, warnings }
    runs.set(run.handle.lobby_id, watched)
    void recordStarted(watched)
    return watched
  }

  /** Told again with every pass until it has been written. */
  async function recordStarted(run: Watched): Promise<void> {
    try {
      await recordStart(ctx, run.handle)
      run.is_recorded = true
    } catch (error) {
      ctx.log.error({ err: error, lobby_id: run.handle.lobby_id }, 'a start could not be recorded')
    }
  }

  async function compare(row: OpenRun): Promise<void> {
    const run = runs.get(row.lobby_id)
    if (run === undefined) {
      if (!starting.has(row.lobby_id)) await settleStray(row)
      return
    }
    run.is_ready = row.is_ready
    if (!row.is_started && !run.is_recorded) await recordStarted(run)
    warn(run, row)
    if (!row.is_wanted) void end(run, RUN_GRACE_MS)
  }

  /** Tells the lobby's log what its row says of seats and connections, once. */
  function warn({ handle, is_ending, warnings }: Watched, row: OpenRun): void {
    const seats = row.seats_expired_while_connected
    if (seats > warnings.seats && warnings.lines++ < SEAT_WARNINGS_MAX) note(handle, seatsWarning(row))
    warnings.seats = seats
    if (!row.is_wanted && !is_ending) note(handle, stopWarning(row))
  }

  /** A disk that is full must not keep a lobby from its end. */
  function note({ lobby_id }: Run['handle'], text: string | null): void {
    if (text === null) return
    try {
      driver.note(lobby_id, text)
    } catch (error) {
      ctx.log.warn({ err: error, lobby_id }, "a warning could not be written into a lobby's log")
    }
  }

  /** A row of ours that nothing here knows: its process lives, or it never came to one, or its end was not recorded. */
  async function settleStray(row: OpenRun): Promise<void> {
    const handle = (await driver.list()).find(({ lobby_id }) => lobby_id === row.lobby_id)
    if (handle !== undefined) {
      takeOver(row, handle)
      return
    }
    const exit = await driver.exitOf(row.lobby_id)
    const told: Exit = exit.reason === 'lost' || row.is_wanted ? exit : { ...exit, reason: 'stopped' }
    // The row was read before its end was recorded, perhaps: then it was not unseen.
    if (!(await recordExit(ctx, row.lobby_id, told, await tailOf(row.lobby_id)))) return
    ctx.log.warn({ lobby_id: row.lobby_id, ...exit }, 'a run ended unseen')
    metrics.run_exits.inc({ reason: told.reason })
  }

  function takeOver(row: OpenRun, handle: Run['handle']): void {
    for (const port of portsOf(row)) ports.hold(port)
    watch({ handle, ports: row.ports, build_id: row.build_id }, row)
    ctx.log.info({ lobby_id: row.lobby_id, pid: handle.pid }, 'a lobby that lives was found again')
  }

  function settle(run: Watched): Promise<void> {
    run.settling ??= settleOnce(run).finally(() => {
      run.settling = null
    })
    return run.settling
  }

  /** Looks whether a run has ended, and records it. What cannot be recorded now is tried again by the next pass. */
  async function settleOnce(run: Watched): Promise<void> {
    const { lobby_id } = run.handle
    try {
      const seen = await driver.exit(run.handle)
      if (seen === null) return
      const exit: Exit = run.is_ending ? { ...seen, reason: 'stopped' } : seen
      rays.ended(lobby_id, exit.reason)
      await recordExit(ctx, lobby_id, exit, await tailOf(lobby_id))
      for (const port of portsOf(run)) ports.release(port)
      runs.delete(lobby_id)
      metrics.run_exits.inc({ reason: exit.reason })
      ctx.log.info({ lobby_id, ...exit }, 'a lobby has ended')
    } catch (error) {
      ctx.log.error({ err: error, lobby_id }, 'the end of a lobby could not be recorded')
    }
  }

  async function end(run: Watched, grace_ms: number): Promise<void> {
    if (run.is_ending && grace_ms === RUN_GRACE_MS) return
    run.is_ending = true
    try {
      await driver.stop(run.handle, grace_ms)
    } catch (error) {
      run.is_ending = false
      ctx.log.error({ err: error, lobby_id: run.handle.lobby_id }, 'a lobby could not be ended')
    }
    wake()
  }

  return {
    wake,

    async adopt() {
      await inheritFormerRuns(ctx)
      const handles = await driver.list()
      const ours = await claimRuns(
        ctx,
        handles.map(({ lobby_id }) => lobby_id),
      )
      for (const row of await readOpenRuns(ctx)) await compare(row)
      // The data folder is this platform's alone, so nobody else answers for these: the database was set back.
      for (const handle of handles) {
        if (ours.has(handle.lobby_id)) continue
        ctx.log.warn({ lobby_id: handle.lobby_id }, 'a lobby lives that no row knows; it is ended')
        driver
          .stop(handle, SHUTDOWN_GRACE_MS)
          .then(() => driver.exit(handle))
          .catch((error) => ctx.log.error({ err: error }, 'it does not end'))
      }
    },

    measure() {
      void meter.look([...runs.values()].map(({ handle }) => handle))
      stalls.wake()
      listening.wake()
    },

    async sweep() {
      try {
        await driver.sweep()
        const used = [...runs.values()].map(({ build_id }) => build_id)
        builds.check()
        // Who does not know what a lobby runs on removes nothing.
        if (!used.includes(null)) await builds.sweep(new Set(used.flatMap((build_id) => build_id ?? [])))
      } catch (error) {
        ctx.log.error({ err: error }, 'what ended lobbies have left could not be removed')
      }
    },

    async close() {
      is_closed = true
      await close()
      await stalls.close()
      await listening.close()
      await Promise.all(starting.values())
      await builds.close()
    },

    async endAll() {
      await Promise.all([...runs.values()].map((run) => end(run, SHUTDOWN_GRACE_MS)))
      // The first may be an answer from before the end.
      for (let asked = 0; asked < 2; asked++) await Promise.all([...runs.values()].map(settle))
    },
  }
}
