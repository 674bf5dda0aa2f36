// Schedules of namespaces, as developers manage them. The matchmaker does what they say (matchmaker/schedules/).
import {
  ApiError,
  type BodyOf,
  type listSchedules as listOperation,
  type listScheduleRuns as listRunsOperation,
  type putSchedule as putOperation,
  type ResponseOf,
  SCHEDULE_NEXT_MAX,
  SCHEDULE_RUNS_MAX,
  SCHEDULES_MAX,
  type Schedule,
  type ScheduleRun,
} from '@musterhost/contract'
import type { Selectable } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Members } from '../../audit/members.ts'
import type { Context } from '../../context.ts'
import type { ScheduleSettings, Schema } from '../../database/schema.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame, requireNamespace } from '../access.ts'
import { throwErrors } from '../field-errors.ts'
import { lockGroupOf } from '../quotas.ts'
import { timestamp } from '../times.ts'

type Body = BodyOf<typeof putOperation>
type Row = Selectable<Schema['schedules']>
type RunRow = Selectable<Schema['schedule_runs']>
type OfSchedule = { game_id: string; schedule_id: string }

/** Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND. */
export async function listSchedules(
  ctx: Context,
  caller: Caller,
  game_id: string,
  namespace_id: string | undefined,
): Promise<ResponseOf<typeof listOperation>> {
  await requireGame(ctx, caller, game_id)
  if (namespace_id !== undefined) await requireNamespace(ctx, game_id, namespace_id)
  const rows = await ctx.db
    .selectFrom('schedules')
    .selectAll()
    .where('game_id', '=', game_id)
    .$if(namespace_id !== undefined, (of) => of.where('namespace_id', '=', namespace_id!))
    .orderBy('name')
    .orderBy('namespace_id')
    .limit(SCHEDULES_MAX)
    .execute()
  return { schedules: await schedulesOf(ctx, rows) }
}

/** Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND, VALIDATION_ERROR, or QUOTA_REACHED when the game has SCHEDULES_MAX. */
export async function putSchedule(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  body: Body,
): Promise<ResponseOf<typeof putOperation>> {
  await requireGame(ctx, caller, game_id)
  const { namespace_id, name, kind } = body
  await requireNamespace(ctx, game_id, namespace_id)
  // Loaded when it is needed.
  const { checkSchedule } = await import('./check.ts')
  throwErrors(await checkSchedule(ctx, body))
  const { row } = await changes(ctx, { game_id, namespace_id }, async (trx) => {
    // Two schedules that are made at the same time are counted one after the other.
    await lockGroupOf(trx, game_id)
    await requireNamespace(ctx, game_id, namespace_id, trx)
    const all = await trx.selectFrom('schedules').selectAll().where('game_id', '=', game_id).execute()
    const former = all.find((one) => one.namespace_id === namespace_id && one.name === name)
    if (former === undefined && all.length >= SCHEDULES_MAX) {
      throw new ApiError('QUOTA_REACHED', { limit: SCHEDULES_MAX, used: all.length })
    }
    if (former !== undefined && former.kind !== kind) throwErrors([otherKind(former)])
    const now = new Date(ctx.now())
    const after: Row = {
      ...{ schedule_id: former?.schedule_id ?? newId(ctx.now()), game_id, namespace_id, name, kind },
      ...{ cron: body.cron, time_zone: body.time_zone, settings: settingsOf(body), is_paused: body.is_paused ?? false },
      create_ts: former?.create_ts ?? now,
      handled_ts: now,
    }
    // What is due now, and was due before the change, is not left out.
    if (former !== undefined && hasSameTimes(former, after)) after.handled_ts = former.handled_ts
    const values = { ...after, settings: JSON.stringify(after.settings) }
    await trx
      .insertInto('schedules')
      .values(values)
      .onConflict((conflict) => conflict.column('schedule_id').doUpdateSet(values))
      .execute()
    if (after.is_paused) {
      await trx
        .updateTable('schedule_runs')
        .set({ outcome: 'cancelled', end_ts: now })
        .where('schedule_id', '=', after.schedule_id)
        .where('end_ts', 'is', null)
        .execute()
    }
    return { row: after, before: former === undefined ? {} : membersOf(former), after: membersOf(after) }
  })
  await ctx.listener.notify(CHANNELS.schedules)
  const [schedule] = await schedulesOf(ctx, [row])
  return { schedule: schedule! }
}

/** Throws GAME_NOT_FOUND or SCHEDULE_NOT_FOUND. */
export async function deleteSchedule(ctx: ChangeContext, caller: Caller, { game_id, schedule_id }: OfSchedule) {
  await requireGame(ctx, caller, game_id)
  await changes(ctx, { game_id }, async (trx) => {
    const row = await trx
      .deleteFrom('schedules')
      .where('game_id', '=', game_id)
      .where('schedule_id', '=', schedule_id)
      .returningAll()
      .executeTakeFirstOrThrow(() => new ApiError('SCHEDULE_NOT_FOUND'))
    return { before: membersOf(row), after: {}, scope: { namespace_id: row.namespace_id } }
  })
  await ctx.listener.notify(CHANNELS.schedules)
}

/** The matchmaker begins it. Throws GAME_NOT_FOUND or SCHEDULE_NOT_FOUND. */
export async function runSchedule(
  ctx: ChangeContext,
  caller: Caller,
  { game_id, schedule_id }: OfSchedule,
): Promise<{ run_id: string }> {
  await requireGame(ctx, caller, game_id)
  const run_id = newId(ctx.now())
  await changes(ctx, { game_id }, async (trx) => {
    const { namespace_id, name, kind } = await trx
      .selectFrom('schedules')
      .select(['namespace_id', 'name', 'kind'])
      .where('game_id', '=', game_id)
      .where('schedule_id', '=', schedule_id)
      .forUpdate()
      .executeTakeFirstOrThrow(() => new ApiError('SCHEDULE_NOT_FOUND'))
    const run = { run_id, schedule_id, due_ts: new Date(ctx.now()), before_s: 0, is_requested: true }
    await trx
      .insertInto('schedule_runs')
      .values({ ...run, outcome: 'waiting' })
      .execute()
    return { before: {}, after: { schedule_id, name, kind, run_id }, scope: { namespace_id } }
  })
  await ctx.listener.notify(CHANNELS.schedules)
  return { run_id }
}

/** Throws GAME_NOT_FOUND or SCHEDULE_NOT_FOUND. */
export async function listRuns(
  ctx: Context,
  caller: Caller,
  { game_id, schedule_id }: OfSchedule,
): Promise<ResponseOf<typeof listRunsOperation>> {
  await requireGame(ctx, caller, game_id)
  await ctx.db
    .selectFrom('schedules')
    .select('schedule_id')
    .where('game_id', '=', game_id)
    .where('schedule_id', '=', schedule_id)
    .executeTakeFirstOrThrow(() => new ApiError('SCHEDULE_NOT_FOUND'))
  const rows = await ctx.db
    .selectFrom('schedule_runs')
    .selectAll()
    .where('schedule_id', '=', schedule_id)
    .orderBy('due_ts', 'desc')
    .orderBy('before_s')
    .limit(SCHEDULE_RUNS_MAX)
    .execute()
  return { runs: rows.map(runOf) }
}

/** With their runs and next times. */
async function schedulesOf(ctx: Context, rows: readonly Row[]): Promise<Schedule[]> {
  if (rows.length === 0) return []
  // Loaded when it is needed.
  const { nextOccurrences } = await import('../../schedules/occurrences.ts')
  const ids = rows.map(({ schedule_id }) => schedule_id)
  const [active_runs, last_runs] = await Promise.all([runsOf(ctx, ids, 'open'), runsOf(ctx, ids, 'ended')])
  return rows.map((row) => {
    const { schedule_id, cron, time_zone } = row
    const active = active_runs.get(schedule_id)
    const last = last_runs.get(schedule_id)
    const next = nextOccurrences({ cron, time_zone }, ctx.now(), SCHEDULE_NEXT_MAX)
    return {
      ...{ schedule_id, namespace_id: row.namespace_id, name: row.name, kind: row.kind, cron, time_zone },
      ...row.settings,
      is_paused: row.is_paused,
      create_ts: timestamp(row.create_ts),
      next: next.map((ms) => timestamp(new Date(ms))),
      ...(active === undefined ? {} : { active_run: runOf(active) }),
      ...(last === undefined ? {} : { last_run: runOf(last) }),
    }
  })
}

/** The last run of each schedule that is open, or that has ended. */
async function runsOf({ db }: Context, ids: readonly string[], which: 'open' | 'ended'): Promise<Map<string, RunRow>> {
  const rows = await db
    .selectFrom('schedule_runs')
    .selectAll()
    .distinctOn('schedule_id')
    .where('schedule_id', 'in', ids)
    .where('end_ts', which === 'open' ? 'is' : 'is not', null)
    .$if(which === 'open', (of) => of.where('before_s', '=', 0))
    .orderBy('schedule_id')
    .orderBy('due_ts', 'desc')
    .orderBy('before_s')
    .execute()
  return new Map(rows.map((row) => [row.schedule_id, row]))
}

function runOf(row: RunRow): ScheduleRun {
  const { run_id, before_s, is_requested, outcome, begin_ts, until_ts, end_ts, message } = row
  return {
    ...{ run_id, due_ts: timestamp(row.due_ts), before_s, is_requested, outcome },
    ...(begin_ts === null ? {} : { begin_ts: timestamp(begin_ts) }),
    ...(until_ts === null ? {} : { until_ts: timestamp(until_ts) }),
    ...(end_ts === null ? {} : { end_ts: timestamp(end_ts) }),
    ...{ lobby_count: row.lobby_count, failed_count: row.failed_count, missed_count: row.missed_count },
    ...(message === null ? {} : { message }),
  }
}

function settingsOf({ game_modes, regions, count, duration_s, deadline_s, text, announce_before }: Body) {
  const settings: ScheduleSettings = {
    ...(game_modes === undefined ? {} : { game_modes }),
    ...(regions === undefined ? {} : { regions }),
    ...(count === undefined ? {} : { count }),
    ...(duration_s === undefined ? {} : { duration_s }),
    ...(deadline_s === undefined ? {} : { deadline_s }),
    ...(text === undefined ? {} : { text }),
    ...(announce_before === undefined ? {} : { announce_before }),
  }
  return settings
}

/** A schedule that was paused begins anew. */
function hasSameTimes(former: Row, after: Row): boolean {
  const offsets = ({ settings }: Row) => (settings.announce_before ?? []).map(({ before_s }) => before_s).join()
  const { cron, time_zone, is_paused } = former
  return !is_paused && cron === after.cron && time_zone === after.time_zone && offsets(former) === offsets(after)
}

function otherKind({ name, kind }: Row) {
  const message = `The schedule ${name} is of the kind ${kind}. Use another name, or delete it first.`
  return { path: ['kind'], reason: 'not_allowed', message }
}

/** What the audit log records. */
function membersOf({ schedule_id, name, kind, cron, time_zone, settings, is_paused }: Row): Members {
  return { schedule_id, name, kind, cron, time_zone, ...settings, is_paused }
}
