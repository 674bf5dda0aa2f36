// The schedules of this process's shards and their runs, in the tables. A step of a schedule is taken by the transaction that
// moves `handled_ts` over it and writes its run, so it is taken once, whichever process does so.
import { SCHEDULE_RUNS_MAX, type ScheduleOutcome } from '@musterhost/contract'
import { type Selectable, sql, type Transaction } from 'kysely'
import { asPlatform, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { newId } from '../../ids.ts'
import type { ScheduleStep, Timing } from '../../schedules/occurrences.ts'

/** Schedules of the platform that are read. */
const SCHEDULES_READ_MAX = 20_000
/** Runs that wait or are under way, of the platform. */
const OPEN_RUNS_MAX = 20_000

export type ScheduleRow = Selectable<Schema['schedules']>
export type RunRow = Selectable<Schema['schedule_runs']>
/** `open`: its runs that wait or are under way. */
export type OpenSchedule = ScheduleRow & { open: RunRow[] }

export function timingOf({ cron, time_zone, settings }: ScheduleRow): Timing {
  return { cron, time_zone, before_s: (settings.announce_before ?? []).map(({ before_s }) => before_s) }
}

/** The schedules of these namespaces. */
export async function readSchedules({ db }: Context, has: (namespace_id: string) => boolean): Promise<OpenSchedule[]> {
  const schedules = await db.selectFrom('schedules').selectAll().limit(SCHEDULES_READ_MAX).execute()
  const runs = await db
    .selectFrom('schedule_runs')
    .selectAll()
    .where('end_ts', 'is', null)
    .orderBy('due_ts')
    .limit(OPEN_RUNS_MAX)
    .execute()
  const open = Map.groupBy(runs, ({ schedule_id }) => schedule_id)
  return schedules
    .filter(({ namespace_id }) => has(namespace_id))
    .map((schedule) => ({ ...schedule, open: open.get(schedule.schedule_id) ?? [] }))
}

/** `until_ms` null: it has no end of its own. */
export type Begin = { begin_ms: number; begin_book_ms: number; until_ms: number | null }

/** `begin` null: the step was missed. `missed_count`: how many missed steps the run stands for. */
export type TakenStep = { step: ScheduleStep; begin: Begin | null; missed_count?: number; message?: string }

/**
 * Takes the steps until a time, with a run for each entry. Returns the runs; null: the steps were taken, or the schedule was
 * changed or paused, meanwhile.
 */
export async function takeSteps(
  ctx: Context,
  schedule: ScheduleRow,
  until_ms: number,
  entries: readonly TakenStep[],
): Promise<RunRow[] | null> {
  let runs: RunRow[] | null = null
  const is_audited = entries.some(({ step, begin }) => begin !== null && step.before_s === 0)
  await inTransaction(ctx, schedule, is_audited, async (trx) => {
    const taken = await trx
      .updateTable('schedules')
      .set({ handled_ts: new Date(until_ms) })
      .where('schedule_id', '=', schedule.schedule_id)
      .where('handled_ts', '=', schedule.handled_ts)
      .where('is_paused', '=', false)
      .returning('schedule_id')
      .executeTakeFirst()
    if (taken === undefined) return false
    const rows = entries.map((entry) => rowOf(ctx, schedule, entry))
    runs = await trx.insertInto('schedule_runs').values(rows).returningAll().execute()
    return true
  })
  if (entries.some(({ begin }) => begin === null)) await removeOldRuns(ctx, schedule.schedule_id)
  return runs
}

/** Begins a run that a person has requested. Null: it was begun or removed meanwhile. */
export async function beginRequested(
  ctx: Context,
  schedule: ScheduleRow,
  { run_id }: RunRow,
  begin: Begin,
): Promise<RunRow | null> {
  let run: RunRow | undefined
  await inTransaction(ctx, schedule, true, async (trx) => {
    run = await trx
      .updateTable('schedule_runs')
      .set({ outcome: 'active', ...timesOf(begin) })
      .where('run_id', '=', run_id)
      .where('outcome', '=', 'waiting')
      .returningAll()
      .executeTakeFirst()
    return run !== undefined
  })
  return run ?? null
}

/** Lobbies that a run has ended. */
export async function countEnded({ db }: Context, run_id: string, lobby_count: number): Promise<void> {
  await db
    .updateTable('schedule_runs')
    .set({ lobby_count: sql<number>`lobby_count + ${lobby_count}` })
    .where('run_id', '=', run_id)
    .execute()
}

export type RunEnding = {
  outcome: ScheduleOutcome
  message?: string | undefined
  lobby_count?: number
  failed_count?: number
}

/** Ends a run, once. */
export async function endRun(ctx: Context, { run_id, schedule_id }: RunRow, ending: RunEnding): Promise<void> {
  await ctx.db
    .updateTable('schedule_runs')
    .set({ ...ending, end_ts: new Date(ctx.now()) })
    .where('run_id', '=', run_id)
    .where('end_ts', 'is', null)
    .execute()
  await removeOldRuns(ctx, schedule_id)
}

async function removeOldRuns({ db }: Context, schedule_id: string): Promise<void> {
  await db
    .deleteFrom('schedule_runs')
    .where('schedule_id', '=', schedule_id)
    .where('end_ts', 'is not', null)
    .where('run_id', 'not in', (of) =>
      of
        .selectFrom('schedule_runs')
        .select('run_id')
        .where('schedule_id', '=', schedule_id)
        .orderBy('due_ts', 'desc')
        .orderBy('before_s')
        .limit(SCHEDULE_RUNS_MAX),
    )
    .execute()
}

/** What ends lobbies is in the audit log. */
async function inTransaction(
  ctx: Context,
  { schedule_id, game_id, namespace_id, name, kind }: ScheduleRow,
  is_audited: boolean,
  work: (trx: Transaction<Schema>) => Promise<boolean>,
): Promise<void> {
  if (!is_audited || (kind !== 'restart' && kind !== 'drain')) {
    await ctx.db.transaction().execute(work)
    return
  }
  await changes(asPlatform(ctx, 'games.schedules.runSchedule'), { game_id, namespace_id }, async (trx) =>
    (await work(trx)) ? { before: {}, after: { schedule_id, name, kind } } : null,
  )
}

function rowOf(ctx: Context, { schedule_id }: ScheduleRow, { step, begin, missed_count = 1, message }: TakenStep) {
  const { due_ms, before_s } = step
  const run = { run_id: newId(ctx.now()), schedule_id, due_ts: new Date(due_ms), before_s, is_requested: false }
  if (begin !== null) return { ...run, outcome: 'active' as const, ...timesOf(begin) }
  return { ...run, outcome: 'missed' as const, end_ts: new Date(ctx.now()), missed_count, message: message ?? null }
}

function timesOf({ begin_ms, begin_book_ms, until_ms }: Begin) {
  return {
    begin_ts: new Date(begin_ms),
    begin_book_ts: new Date(begin_book_ms),
    until_ts: until_ms === null ? null : new Date(until_ms),
  }
}
