// Does what schedules want in the namespaces of this process's shards: begins what is due, follows what is under way, and sets
// the rules of books. Everything that must outlive the process is in the rows: a process that takes a shard goes on with them.
import { setImmediate as immediate } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import { createPoller, type Poller } from '../../database/poller.ts'
import { announcementText, isInTime, missedEntries } from '../../schedules/lateness.ts'
import { nextStep, type ScheduleStep, stepsBetween } from '../../schedules/occurrences.ts'
import { setScheduleRules } from '../book/evolve.ts'
import { endLobbies, isEmpty, lobbiesToEnd, type PlannedEnds } from '../book/restarts.ts'
import type { ScheduleRules, ScheduleScope } from '../book/schedule-rules.ts'
import type { RaisedIdle } from '../idle-lobbies.ts'
import { ShardMoved } from '../shards/shard-moved.ts'
import { announce } from './announce.ts'
import type { ScheduleParts } from './parts.ts'
import {
  type Begin,
  beginRequested,
  countEnded,
  endRun,
  type OpenSchedule,
  type RunRow,
  readSchedules,
  type ScheduleRow,
  type TakenStep,
  takeSteps,
  timingOf,
} from './runs.ts'

/** How often the time is compared with what is due next, without a query. */
const TICK_MS = 1_000
/** How often schedules are read, in case a notification was lost. */
const READ_EVERY_MS = 30_000
const RETRY_MS = 2_000
/** How long a server can read an announcement with its own lobby. */
const ANNOUNCED_MS = 10 * 60_000
/** Announcements of a namespace in memory. */
const ANNOUNCEMENTS_MAX = 20
/** Steps of one schedule that one pass takes; the next pass takes the rest. */
const STEPS_MAX = 2_000

const MISSED = 'The platform could not begin it in time.'
const STILL_ACTIVE = 'The run before was still under way.'
const INTERRUPTED = 'The platform stopped before all lobbies had the line.'

export type ScheduleWork = { run: () => Promise<void>; close: () => Promise<void> }

export function startScheduleWork(ctx: Context, parts: ScheduleParts): ScheduleWork {
  const work = new Work(ctx, parts)
  return { run: () => work.run(), close: () => work.close() }
}

class Work {
  readonly #ctx: Context
  readonly #parts: ScheduleParts
  readonly #poller: Poller
  readonly #ends: (() => void)[] = []
  /** Announcements that this process writes to lobbies. */
  readonly #announcing = new Map<string, Promise<void>>()
  /** The latest announcements, by namespace. */
  readonly #announced = new Map<string, (ScheduleScope & { text: string; ms: number })[]>()
  /** When the next step of each schedule is due. */
  readonly #next = new Map<string, { key: string; at_ms: number }>()
  /** Restarts whose lobbies have players. */
  #endings: { namespace_id: string; wanted: PlannedEnds }[] = []
  readonly #closing = new AbortController()
  #due_ms = Number.POSITIVE_INFINITY
  #read_ms = Number.NEGATIVE_INFINITY

  constructor(ctx: Context, parts: ScheduleParts) {
    this.#ctx = ctx
    this.#parts = parts
    this.#poller = createPoller(ctx, {
      run: () => this.#pass(),
      failure: 'schedules could not be followed; trying again',
      retry_ms: RETRY_MS,
    })
    const timer = setInterval(() => this.#tick(), TICK_MS)
    this.#ends.push(() => clearInterval(timer), parts.books.onCommits({ onCommit() {}, onReload: this.#poller.wake }))
  }

  async run(): Promise<void> {
    this.#poller.wake()
    await this.#poller.running()
  }

  async close(): Promise<void> {
    for (const end of this.#ends) end()
    this.#closing.abort()
    await this.#poller.close()
    await Promise.all(this.#announcing.values())
    this.#setRules(new Map())
    this.#parts.idle_lobbies.raise(new Map())
  }

  #tick(): void {
    const is_due = this.#ctx.now() >= this.#due_ms || this.#ctx.elapsed() - this.#read_ms >= READ_EVERY_MS
    if (is_due || this.#endings.some((ending) => this.#mayEnd(ending))) this.#poller.wake()
  }

  /** Whether players have left a lobby that restarts, or its server has opened it again. */
  #mayEnd({ namespace_id, wanted }: { namespace_id: string; wanted: PlannedEnds }): boolean {
    const lobbies = lobbiesToEnd(this.#parts.books.book(namespace_id)?.lobbies.values() ?? [], wanted)
    return lobbies.length === 0 || lobbies.some((lobby) => !lobby.is_closed || isEmpty(lobby))
  }

  async #pass(): Promise<void> {
    this.#read_ms = this.#ctx.elapsed()
    const schedules = await readSchedules(this.#ctx, (namespace_id) => this.#parts.books.has(namespace_id))
    this.#due_ms = Number.POSITIVE_INFINITY
    this.#endings = []
    this.#forgetRemoved(schedules)
    let failure: unknown = null
    for (const schedule of schedules) {
      try {
        await this.#follow(schedule)
        if (!schedule.is_paused) await this.#advance(schedule)
      } catch (error) {
        // The next holder of the shard goes on. One schedule does not keep the others.
        if (!(error instanceof ShardMoved)) failure ??= error
      }
    }
    this.#applyRules(schedules)
    // The rules of a restart say to its servers that it has begun, before their lobbies close.
    for (const schedule of schedules) await this.#endLobbiesOf(schedule).catch(ignoreMoved)
    if (failure !== null) throw failure
  }

  #forgetRemoved(schedules: readonly OpenSchedule[]): void {
    const ids = new Set(schedules.map(({ schedule_id }) => schedule_id))
    for (const schedule_id of this.#next.keys()) if (!ids.has(schedule_id)) this.#next.delete(schedule_id)
  }

  /** Ends runs whose time is over, and begins those that persons have requested. */
  async #follow(schedule: OpenSchedule): Promise<void> {
    const now_ms = this.#ctx.now()
    const { kind } = schedule
    for (const run of [...schedule.open]) {
      if (run.outcome === 'waiting') await this.#beginRequested(schedule, run)
      else if (isAnnouncement(schedule, run)) {
        if (this.#announcing.has(run.run_id)) continue
        await this.#end(schedule, run, { outcome: 'failed', message: INTERRUPTED })
      } else if (run.until_ts !== null && run.until_ts.getTime() <= now_ms && kind !== 'restart') {
        await this.#end(schedule, run, { outcome: 'done' })
      }
    }
  }

  /** Takes the steps that are due. */
  async #advance(schedule: OpenSchedule): Promise<void> {
    const { kind, settings } = schedule
    const now_ms = this.#ctx.now()
    const known_ms = this.#nextOf(schedule)
    if (known_ms !== undefined && known_ms > now_ms) return this.#dueAt(known_ms)
    // Requests go between two schedules: an expression takes part of a millisecond.
    await immediate()
    const timing = timingOf(schedule)
    const steps = stepsBetween(timing, schedule.handled_ts.getTime(), now_ms, STEPS_MAX)
    const is_over = (step: ScheduleStep): boolean => !isInTime(kind, settings.duration_s, step, now_ms)
    const first = steps.findIndex((step) => !is_over(step))
    const missed = first === -1 ? steps : steps.slice(0, first)
    if (missed.length > 0) {
      const entries = missedEntries(missed).map((entry) => ({ ...entry, begin: null, message: MISSED }))
      if ((await this.#take(schedule, missed.at(-1)!.at_ms, entries)) === null) return this.#again()
    }
    const due = first === -1 ? [] : steps.slice(first)
    for (const [at_ms, together] of Map.groupBy(due, (step) => step.at_ms)) {
      const entries = together.map((step) =>
        is_over(step) ? { step, begin: null, message: MISSED } : this.#entryOf(schedule, step),
      )
      const runs = await this.#take(schedule, at_ms, entries)
      if (runs === null) return this.#again()
      for (const run of runs) if (run.outcome === 'active') this.#begun(schedule, run)
    }
    if (steps.length === STEPS_MAX) this.#again()
    const next_ms = nextStep(timing, schedule.handled_ts.getTime())?.at_ms ?? Number.POSITIVE_INFINITY
    this.#next.set(schedule.schedule_id, { key: keyOf(schedule), at_ms: next_ms })
    this.#dueAt(next_ms)
  }

  /** When its next step is due; undefined: it was not computed, or the schedule has changed. */
  #nextOf(schedule: OpenSchedule): number | undefined {
    const known = this.#next.get(schedule.schedule_id)
    return known?.key === keyOf(schedule) ? known.at_ms : undefined
  }

  async #take(schedule: OpenSchedule, until_ms: number, entries: TakenStep[]): Promise<RunRow[] | null> {
    const runs = await takeSteps(this.#ctx, schedule, until_ms, entries)
    if (runs !== null) schedule.handled_ts = new Date(until_ms)
    return runs
  }

  #entryOf(schedule: OpenSchedule, step: ScheduleStep): TakenStep {
    if (step.before_s === 0 && hasActive(schedule)) return { step, begin: null, message: STILL_ACTIVE }
    return { step, begin: this.#beginOf(schedule, step) }
  }

  /** A window ends when it would have ended in time. A late restart leaves players their full time. */
  #beginOf({ kind, settings }: ScheduleRow, { due_ms, before_s }: Pick<ScheduleStep, 'due_ms' | 'before_s'>): Begin {
    const begin_ms = this.#ctx.now()
    const begin = { begin_ms, begin_book_ms: this.#parts.books.nowMs() }
    if (before_s > 0 || kind === 'announce') return { ...begin, until_ms: null }
    if (kind === 'restart') return { ...begin, until_ms: begin_ms + (settings.deadline_s ?? 0) * 1_000 }
    return { ...begin, until_ms: due_ms + (settings.duration_s ?? 0) * 1_000 }
  }

  async #beginRequested(schedule: OpenSchedule, run: RunRow): Promise<void> {
    if (hasActive(schedule)) return this.#end(schedule, run, { outcome: 'missed', message: STILL_ACTIVE })
    const begin = this.#beginOf(schedule, { due_ms: this.#ctx.now(), before_s: 0 })
    const begun = await beginRequested(this.#ctx, schedule, run, begin)
    schedule.open = schedule.open.filter((one) => one !== run)
    if (begun !== null) this.#begun(schedule, begun)
  }

  #begun(schedule: OpenSchedule, run: RunRow): void {
    const { schedule_id, namespace_id, name, kind } = schedule
    this.#ctx.log.info({ schedule_id, namespace_id, name, kind, before_s: run.before_s }, 'a schedule has begun')
    schedule.open.push(run)
    if (!isAnnouncement(schedule, run)) return
    const done = this.#announce(schedule, run)
      .catch((error: unknown) => this.#ctx.log.warn({ err: error, schedule_id }, 'an announcement could not be made'))
      .finally(() => this.#announcing.delete(run.run_id))
    this.#announcing.set(run.run_id, done)
  }

  async #announce(schedule: ScheduleRow, run: RunRow): Promise<void> {
    const { namespace_id, name, settings } = schedule
    const { before_s, due_ts } = run
    const wanted = before_s === 0 ? settings.text : textBefore(schedule, before_s)
    const now_ms = this.#ctx.now()
    const text = before_s === 0 ? (wanted ?? '') : announcementText(wanted ?? '', due_ts.getTime(), now_ms)
    const scope = scopeOf(schedule)
    const before = this.#announced.get(namespace_id) ?? []
    this.#announced.set(namespace_id, [...before, { ...scope, text, ms: now_ms }].slice(-ANNOUNCEMENTS_MAX))
    const note = `input by schedule ${name}: ${text}`
    const ending = await announce(this.#ctx, this.#parts, { namespace_id, scope, text, note }, this.#closing.signal)
    // The process that follows records that it was interrupted.
    if (ending !== null) await endRun(this.#ctx, run, ending)
  }

  /** Ends the lobbies of a restart, and those of a drain that is past its deadline. */
  async #endLobbiesOf(schedule: OpenSchedule): Promise<void> {
    const { kind, namespace_id, settings } = schedule
    if (kind !== 'restart' && kind !== 'drain') return
    const { books } = this.#parts
    const now_ms = this.#ctx.now()
    for (const run of [...schedule.open]) {
      const { begin_ts, begin_book_ts, run_id } = run
      if (run.outcome !== 'active' || run.before_s > 0 || begin_ts === null || begin_book_ts === null) continue
      const { deadline_s } = settings
      const deadline_ms = deadline_s === undefined ? Number.POSITIVE_INFINITY : begin_ts.getTime() + deadline_s * 1_000
      const is_over = deadline_ms <= now_ms
      if (kind === 'drain' && !is_over) {
        this.#dueAt(deadline_ms)
        continue
      }
      const begin_ms = kind === 'drain' ? Number.POSITIVE_INFINITY : begin_book_ts.getTime()
      const wanted = { ...scopeOf(schedule), begin_ms }
      const found = lobbiesToEnd(books.book(namespace_id)?.lobbies.values() ?? [], wanted)
      if (found.length > 0) {
        const ended_count = await books.commit(namespace_id, (book, env) =>
          endLobbies(lobbiesToEnd(book.lobbies.values(), wanted), is_over ? 'all' : 'empty', env.now_ms),
        )
        if (ended_count > 0) await countEnded(this.#ctx, run_id, ended_count)
      }
      const left = lobbiesToEnd(books.book(namespace_id)?.lobbies.values() ?? [], wanted).length
      if (kind === 'restart' && left === 0) await this.#end(schedule, run, { outcome: 'done' })
      else if (left > 0) this.#endings.push({ namespace_id, wanted })
    }
  }

  async #end(schedule: OpenSchedule, run: RunRow, ending: Parameters<typeof endRun>[2]): Promise<void> {
    await endRun(this.#ctx, run, ending)
    schedule.open = schedule.open.filter((one) => one !== run)
  }

  /** What the schedules say now. */
  #applyRules(schedules: readonly OpenSchedule[]): void {
    const rules = new Map<string, ScheduleRules>()
    const raised = new Map<string, RaisedIdle[]>()
    for (const schedule of schedules) {
      const { namespace_id, kind, settings } = schedule
      for (const { before_s, outcome, until_ts, begin_book_ts } of schedule.open) {
        if (outcome !== 'active' || before_s > 0 || until_ts === null || begin_book_ts === null) continue
        this.#dueAt(until_ts.getTime())
        const before = rules.get(namespace_id) ?? NO_RULES
        if (kind === 'drain') {
          const drained_until_ms = Math.max(before.drained_until_ms ?? 0, until_ts.getTime())
          rules.set(namespace_id, { ...before, drained_until_ms })
        } else if (kind === 'restart') {
          const restart = { ...scopeOf(schedule), begin_ms: begin_book_ts.getTime() }
          rules.set(namespace_id, { ...before, restarts: [...before.restarts, restart] })
        } else if (kind === 'idle_lobbies') {
          const wanted = { ...scopeOf(schedule), count: settings.count ?? 0 }
          raised.set(namespace_id, [...(raised.get(namespace_id) ?? []), wanted])
        }
      }
    }
    this.#addAnnouncements(rules)
    this.#setRules(rules)
    this.#parts.idle_lobbies.raise(raised)
  }

  #addAnnouncements(rules: Map<string, ScheduleRules>): void {
    const now_ms = this.#ctx.now()
    for (const [namespace_id, all] of this.#announced) {
      const announcements = all.filter(({ ms }) => ms <= now_ms && now_ms < ms + ANNOUNCED_MS)
      if (announcements.length === 0) this.#announced.delete(namespace_id)
      else {
        this.#announced.set(namespace_id, announcements)
        rules.set(namespace_id, { ...(rules.get(namespace_id) ?? NO_RULES), announcements })
        this.#dueAt(announcements[0]!.ms + ANNOUNCED_MS)
      }
    }
  }

  #setRules(wanted: ReadonlyMap<string, ScheduleRules>): void {
    const { books, rules } = this.#parts
    for (const namespace_id of new Set([...rules.keys(), ...wanted.keys()])) {
      const now = wanted.get(namespace_id) ?? null
      const book = books.book(namespace_id)
      const is_same = JSON.stringify(rules.get(namespace_id) ?? null) === JSON.stringify(now)
      if (now === null) rules.delete(namespace_id)
      else rules.set(namespace_id, now)
      if (book === undefined || is_same) continue
      setScheduleRules(book, now)
      books.lobby_watch.wake(book.lobbies.keys())
    }
  }

  #dueAt(ms: number): void {
    this.#due_ms = Math.min(this.#due_ms, ms)
  }

  /** The next pass follows at once. */
  #again(): void {
    this.#dueAt(this.#ctx.now())
  }
}

const NO_RULES: ScheduleRules = { drained_until_ms: null, restarts: [], announcements: [] }

/** What the next step follows from. */
function keyOf({ cron, time_zone, handled_ts, settings }: ScheduleRow): string {
  const offsets = settings.announce_before?.map(({ before_s }) => before_s).join()
  return [cron, time_zone, handled_ts.getTime(), offsets].join('\n')
}

function ignoreMoved(error: unknown): void {
  if (!(error instanceof ShardMoved)) throw error
}

function isAnnouncement({ kind }: ScheduleRow, { before_s }: RunRow): boolean {
  return kind === 'announce' || before_s > 0
}

/** Whether what the schedule does is under way. */
function hasActive(schedule: OpenSchedule): boolean {
  return schedule.open.some((run) => run.outcome === 'active' && !isAnnouncement(schedule, run))
}

function scopeOf({ settings }: ScheduleRow): ScheduleScope {
  return { game_modes: settings.game_modes ?? null, regions: settings.regions ?? null }
}

function textBefore({ settings }: ScheduleRow, before_s: number): string | undefined {
  return settings.announce_before?.find((one) => one.before_s === before_s)?.text
}
