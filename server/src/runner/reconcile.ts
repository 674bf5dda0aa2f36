// The reconcile loop compares what is wanted (rows of `lobbies`) with what runs (the driver, and this runner's rows of
// `lobby_runs`). It passes at every wake-up and every few seconds, one pass at a time. Slow steps (a start, an unpacking, an
// ending) run beside the passes and wake the loop when they are done. A run is:
//
//   wanted -> starting (row, process) -> running -> ending (no longer wanted) -> ended (exit recorded)
//
// A row of this runner with neither a process nor a start under way comes from a crash between the row and the process,
// or from a write whose response was lost. Its end is recorded. A lobby is started once and never again.
import type { Context } from '../context.ts'
import { createPoller, type Poller } from '../database/poller.ts'
import { addressWarning, seatsWarning, stopWarning } from '../lobby-logs/connection-warnings.ts'
import { logTail } from '../lobby-logs/tail.ts'
import { adoptRenamedRuns } from './adopt-renamed.ts'
import type { BuildState, Builds } from './builds.ts'
import type { Driver, Exit, Handle } from './drivers/driver.ts'
import { endHint } from './end-hints.ts'
import { buildOf, type Launch, launchLobby, portsOf, type Run, recordFailedStart } from './launch.ts'
import { watchListening } from './listening.ts'
import { LobbyMeter } from './lobby-metrics.ts'
import type { Ports } from './ports.ts'
import type { GatewayNews } from './protocols/gateway.ts'
import { Protocols } from './protocols/protocols.ts'
import { Reachability } from './reachability.ts'
import { ReadinessWatch } from './readiness.ts'
import {
  claimRuns,
  type OpenRun,
  readOpenRuns,
  readWanted,
  recordExit,
  recordProtocolReport,
  recordStart,
  type WantedLobby,
} from './rows.ts'
import { watchSilence } from './silence.ts'
import { type StallRun, watchStalls } from './stalls.ts'
import type { StartTraces } from './start-trace.ts'

/** Starts under way at once. More of them make no start faster. */
const START_CONCURRENCY_MAX = 8
/** Wanted lobbies read in one pass. The next pass reads the others. */
const WANTED_MAX = 64
/** From SIGTERM to SIGKILL, for a lobby that is no longer wanted. */
const RUN_GRACE_MS = 30_000
/** From SIGTERM to SIGKILL, when the whole platform ends. */
const SHUTDOWN_GRACE_MS = 5_000
/** Lines in the log of one lobby that warn of expired seats, and of refused addresses. */
const SEAT_WARNINGS_MAX = 20
/** How long after the end of a lobby its files and networks are searched often. */
const ENDED_LATELY_MS = 60_000
/** A pass that failed, most likely because the database is away, is repeated after this time. */
const RETRY_MS = 1_000
/** How often `endAll` asks for each exit. The first time may join a request that began before the end. */
const LAST_REQUESTS = 2

/** A run and the state of the loop's work on it. */
type ActiveRun = StallRun &
  Run & {
    is_ready: boolean
    /** The runner has seen that the server is ready, and has recorded it. */
    is_seen_ready: boolean
    is_ending: boolean
    is_recorded: boolean
    /** The check for its end that is under way. */
    checking: Promise<void> | null
    warnings: SeatWarnings
  }
/** Expired seats and refused connections that the lobby's log has warned of, and in how many lines. */
type SeatWarnings = { seats: number; refused: number; lines: number; refused_lines: number }

const NEW_RUN = {
  is_stalled: false,
  is_ready: false,
  is_seen_ready: false,
  seats_expired_while_connected: 0,
  refused_count: 0,
}

export class ReconcileLoop {
  /** There may be something to do. Cheap, and never waits. */
  readonly wake: () => void
  /** The nodes whose lobbies this runner runs. */
  readonly node_ids: readonly string[]
  readonly #ctx: Context
  readonly #driver: Driver
  readonly #builds: Builds
  readonly #traces: StartTraces
  readonly #launch: Launch
  readonly #protocols: Protocols
  readonly #meter: LobbyMeter
  readonly #stalls: Pick<Poller, 'wake' | 'close'>
  readonly #listening: Pick<Poller, 'wake' | 'close'>
  readonly #silence: Pick<Poller, 'wake' | 'close'>
  readonly #readiness: ReadinessWatch
  readonly #passes: Poller
  /** By lobby id. */
  readonly #runs = new Map<string, ActiveRun>()
  readonly #starting = new Map<string, Promise<void>>()
  #last_end_ms: number
  #is_closed = false

  constructor(ctx: Context, driver: Driver, builds: Builds, ports: Ports, traces: StartTraces) {
    this.#ctx = ctx
    this.#driver = driver
    this.node_ids = driver.nodes?.ids ?? [ctx.config.node_id]
    this.#builds = builds
    this.#traces = traces
    this.#protocols = new Protocols(ctx, driver, (news) => this.#onNews(news))
    this.#launch = { ctx, driver, builds, ports, protocols: this.#protocols }
    this.#meter = new LobbyMeter(ctx, driver)
    // The sockets of other machines are not seen here.
    const runsHere = (): ActiveRun[] => (driver.nodes === null ? [...this.#runs.values()] : [])
    this.#stalls = watchStalls(ctx, driver, runsHere)
    const reach = new Reachability()
    this.#listening = watchListening(ctx, driver, reach, () =>
      runsHere().filter((run) => !run.is_ready && !run.is_seen_ready && !run.is_ending),
    )
    this.#silence = watchSilence(ctx, driver, () => [...this.#runs.values()].filter((run) => !run.is_ending))
    this.#readiness = new ReadinessWatch(ctx, driver, reach, () =>
      [...this.#runs.values()].filter((run) => !run.is_ready && !run.is_seen_ready && !run.is_ending),
    )
    this.#passes = createPoller(ctx, {
      run: () => this.#pass(),
      failure: 'the reconcile pass failed; retrying',
      retry_ms: RETRY_MS,
    })
    this.#last_end_ms = ctx.elapsed()
    this.wake = this.#passes.wake
    ctx.metrics.gauge('runs', 'Lobbies whose process runs on this machine.', [], (set) => set(this.#runs.size))
  }

  /** Takes over the runs that live from before. Called before the first wake-up. */
  async adopt(): Promise<void> {
    await adoptRenamedRuns(this.#ctx)
    const handles = await this.#driver.list()
    const ours = await claimRuns(this.#ctx, handles)
    for (const row of await readOpenRuns(this.#ctx, this.node_ids)) await this.#reconcileRow(row)
    // The data folder belongs to this platform alone, so a process without a row means that the database was set back.
    for (const handle of handles) if (!ours.has(handle.lobby_id)) this.#endUnknown(handle)
  }

  /** Whether a lobby has ended lately, or this process is young: the one before it may have left something. */
  get has_ended_runs(): boolean {
    return this.#ctx.elapsed() - this.#last_end_ms < ENDED_LATELY_MS
  }

  /** Every second: reads which runs have ended, what the others use, where that is due, and which servers do not respond. */
  measure(): void {
    for (const run of this.#runs.values()) void this.#checkEnd(run)
    void this.#meter.sample([...this.#runs.values()].map(({ handle }) => handle))
    this.#stalls.wake()
    this.#listening.wake()
    this.#silence.wake()
  }

  /** Removes the files and the usage of ended lobbies, and unused builds. */
  async sweep(): Promise<void> {
    try {
      await this.#driver.sweep()
      await this.#meter.sweep()
      const used = [...this.#runs.values()].map(({ build_id }) => build_id)
      this.#builds.check()
      // While the build of some run is unknown no build is removed.
      if (!used.includes(null)) await this.#builds.sweep(new Set(used.flatMap((build_id) => build_id ?? [])))
    } catch (error) {
      this.#ctx.log.error({ err: error }, 'what ended lobbies left could not be removed')
    }
  }

  /** Starts no further lobby, and waits for the work that is under way. */
  async close(): Promise<void> {
    this.#is_closed = true
    await this.#passes.close()
    await this.#stalls.close()
    await this.#listening.close()
    await this.#silence.close()
    await this.#readiness.close()
    await this.#protocols.close()
    await Promise.all(this.#starting.values())
    await this.#builds.close()
  }

  /** After `close`: ends every run, and records it. */
  async endAll(): Promise<void> {
    await Promise.all([...this.#runs.values()].map((run) => this.#end(run, SHUTDOWN_GRACE_MS)))
    for (let asked = 0; asked < LAST_REQUESTS; asked++) {
      await Promise.all([...this.#runs.values()].map((run) => this.#checkEnd(run)))
    }
    await this.#protocols.end()
  }

  #onNews({ lobby_id, protocol, report, lines }: GatewayNews): void {
    const run = this.#runs.get(lobby_id)
    if (run === undefined) return
    for (const line of lines) this.#note(run.handle, line)
    if (report === null) return
    recordProtocolReport(this.#ctx, lobby_id, { protocol, ...report }).catch((error: unknown) =>
      this.#ctx.log.warn({ err: error, lobby_id }, 'the report of a server could not be recorded'),
    )
  }

  async #pass(): Promise<void> {
    const { nodes } = this.#driver
    // A lobby of a node that is away waits for it, or is ended by the matchmaker.
    const able = nodes === null ? this.node_ids : nodes.here().map(({ node_id }) => node_id)
    for (const lobby of await readWanted(this.#ctx, WANTED_MAX, able)) this.#beginStart(lobby)
    for (const row of await readOpenRuns(this.#ctx, this.node_ids)) await this.#reconcileRow(row)
    for (const run of this.#runs.values()) void this.#checkEnd(run)
  }

  #beginStart(lobby: WantedLobby): void {
    const { lobby_id } = lobby
    if (this.#is_closed || this.#starting.size >= START_CONCURRENCY_MAX) return
    if (this.#starting.has(lobby_id) || this.#runs.has(lobby_id)) return
    const source = buildOf(lobby)
    const build: BuildState =
      source === null ? { failure: 'The game mode has no build.', reason: 'no_build' } : this.#builds.find(source)
    if (build === 'unpacking') return
    const started = this.#start(lobby, build).finally(() => {
      this.#starting.delete(lobby_id)
      // More lobbies may be wanted than could be started at once, and the start of a new run is to be recorded.
      this.wake()
    })
    this.#starting.set(lobby_id, started)
  }

  async #start(lobby: WantedLobby, build: Exclude<BuildState, 'unpacking'>): Promise<void> {
    const { log, metrics } = this.#ctx
    const { lobby_id } = lobby
    const ray = this.#traces.open(lobby)
    const since = performance.now()
    try {
      const run = await ('failure' in build
        ? recordFailedStart(this.#launch, lobby, build.reason, build.failure)
        : launchLobby(this.#launch, lobby, build, ray))
      this.#traces.started(ray, run)
      metrics.run_starts.inc({ result: run === null ? 'refused' : 'started' })
      if (run === null) this.#last_end_ms = this.#ctx.elapsed()
      if (run === null) return
      const start_ms = performance.now() - since
      metrics.run_start_seconds.observe(start_ms / 1_000)
      this.#track(run)
      log.info({ lobby_id, start_ms: Math.round(start_ms) }, 'lobby started')
    } catch (error) {
      metrics.run_starts.inc({ result: 'failed' })
      log.error({ err: error, lobby_id }, 'lobby could not be started')
    }
  }

  #track(run: Run, row: Pick<OpenRun, keyof typeof NEW_RUN> = NEW_RUN): void {
    const { is_stalled, is_ready, is_seen_ready } = row
    const counts = { seats: row.seats_expired_while_connected, refused: row.refused_count }
    const state = { is_stalled, is_ready, is_seen_ready, is_ending: false, is_recorded: false, checking: null }
    const active = { ...run, ...state, warnings: { ...counts, lines: 0, refused_lines: 0 } }
    this.#runs.set(run.handle.lobby_id, active)
    this.#readiness.need()
    void this.#recordStarted(active)
  }

  /** Repeated with every pass until it succeeds. */
  async #recordStarted(run: ActiveRun): Promise<void> {
    try {
      await recordStart(this.#ctx, run.handle)
      run.is_recorded = true
    } catch (error) {
      this.#ctx.log.error(
        { err: error, lobby_id: run.handle.lobby_id },
        'start of a lobby could not be recorded; retrying',
      )
    }
  }

  async #reconcileRow(row: OpenRun): Promise<void> {
    const run = this.#runs.get(row.lobby_id)
    if (run === undefined) {
      if (!this.#starting.has(row.lobby_id)) await this.#resolveUnknown(row)
      return
    }
    run.is_ready = row.is_ready
    if (!row.is_started && !run.is_recorded) await this.#recordStarted(run)
    this.#warn(run, row)
    if (!row.is_wanted) void this.#end(run, RUN_GRACE_MS)
  }

  /** Writes warnings about seats and connections into the lobby's log, each once. */
  #warn({ handle, is_ending, warnings }: ActiveRun, row: OpenRun): void {
    const seats = row.seats_expired_while_connected
    if (seats > warnings.seats && warnings.lines++ < SEAT_WARNINGS_MAX) this.#note(handle, seatsWarning(row))
    warnings.seats = seats
    const refused = row.refused_count
    if (refused > warnings.refused && warnings.refused_lines++ < SEAT_WARNINGS_MAX)
      this.#note(handle, addressWarning(row))
    warnings.refused = refused
    if (!row.is_wanted && !is_ending) this.#note(handle, stopWarning(row))
  }

  /** A failure is only logged: a full disk must not prevent the end of a lobby. */
  #note({ lobby_id }: Handle, text: string | null): void {
    if (text === null) return
    try {
      this.#driver.note(lobby_id, text)
    } catch (error) {
      this.#ctx.log.warn({ err: error, lobby_id }, "warning could not be written into a lobby's log")
    }
  }

  /** A row whose run this process does not know: its process lives, or never existed, or its end was not recorded. */
  async #resolveUnknown(row: OpenRun): Promise<void> {
    const { lobby_id } = row
    const handle = (await this.#driver.list()).find((one) => one.lobby_id === lobby_id)
    if (handle !== undefined) {
      this.#takeOver(row, handle)
      return
    }
    const exit = await this.#driver.exitOf(lobby_id)
    const recorded: Exit = exit.reason === 'lost' || row.is_wanted ? exit : { ...exit, reason: 'stopped' }
    // False: the end was recorded after the row was read.
    if (!(await recordExit(this.#ctx, lobby_id, recorded, await this.#tailOf(lobby_id)))) return
    this.#last_end_ms = this.#ctx.elapsed()
    this.#ctx.log.warn({ lobby_id, ...exit }, 'lobby ended while no runner watched it')
    this.#ctx.metrics.run_exits.inc({ reason: recorded.reason })
  }

  #takeOver(row: OpenRun, handle: Handle): void {
    this.#protocols.adopt(row.lobby_id)
    for (const { pool, port } of portsOf(this.#launch, row)) pool.reserve(port)
    const { ports, build_id, ready_check } = row
    this.#track({ handle, ports, build_id, ready_check }, row)
    this.#ctx.log.info({ lobby_id: row.lobby_id, pid: handle.pid }, 'running lobby taken over')
  }

  #endUnknown(handle: Handle): void {
    const { lobby_id } = handle
    this.#last_end_ms = this.#ctx.elapsed()
    this.#ctx.log.warn({ lobby_id }, 'running lobby has no row in the database; ending it')
    this.#driver
      .stop(handle, SHUTDOWN_GRACE_MS)
      .then(() => this.#driver.exit(handle))
      .catch((error: unknown) =>
        this.#ctx.log.error({ err: error, lobby_id }, 'lobby without a row could not be ended'),
      )
  }

  #checkEnd(run: ActiveRun): Promise<void> {
    run.checking ??= this.#recordIfEnded(run).finally(() => {
      run.checking = null
    })
    return run.checking
  }

  /** Records the exit of a run that has ended. A failure is repeated by the next pass. */
  async #recordIfEnded(run: ActiveRun): Promise<void> {
    const { log, metrics } = this.#ctx
    const { lobby_id } = run.handle
    try {
      const found = await this.#driver.exit(run.handle)
      if (found === null) return
      const exit: Exit = run.is_ending ? { ...found, reason: 'stopped' } : found
      this.#traces.ended(lobby_id, exit.reason)
      await recordExit(this.#ctx, lobby_id, exit, await this.#explainedTail(run, exit))
      for (const { pool, port } of portsOf(this.#launch, run)) pool.release(port)
      this.#runs.delete(lobby_id)
      this.#protocols.ended(lobby_id)
      this.#last_end_ms = this.#ctx.elapsed()
      metrics.run_exits.inc({ reason: exit.reason })
      log.info({ lobby_id, ...exit }, 'lobby ended')
    } catch (error) {
      log.error({ err: error, lobby_id }, 'end of a lobby could not be recorded; retrying')
    }
  }

  async #end(run: ActiveRun, grace_ms: number): Promise<void> {
    if (run.is_ending && grace_ms === RUN_GRACE_MS) return
    run.is_ending = true
    try {
      await this.#driver.stop(run.handle, grace_ms)
    } catch (error) {
      run.is_ending = false
      this.#ctx.log.error({ err: error, lobby_id: run.handle.lobby_id }, 'lobby could not be ended')
    }
    this.wake()
  }

  /** The last lines of the log of a run that has ended, with what this platform says about them. */
  async #explainedTail({ handle, is_ready, is_seen_ready }: ActiveRun, exit: Exit): Promise<string[]> {
    const lines = await this.#tailOf(handle.lobby_id)
    const hint = endHint(lines, exit, is_ready || is_seen_ready)
    if (hint === null) return lines
    this.#note(handle, hint)
    return this.#tailOf(handle.lobby_id)
  }

  #tailOf(lobby_id: string): Promise<string[]> {
    return logTail((stream, lines_max) => this.#driver.logs(lobby_id, stream, lines_max))
  }
}
