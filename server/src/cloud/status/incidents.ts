// Incidents of a game that people write. Each has updates, the newest of which says its state. The image of the page is written in the
// same transaction.
import {
  ApiError,
  type BodyOf,
  type createStatusIncident as createOperation,
  STATUS_INCIDENTS_MAX,
  STATUS_UPDATES_MAX,
  type StatusIncident,
  type updateStatusIncident as updateOperation,
} from '@musterhost/contract'
import { sql } from 'kysely'
import { jsonArrayFrom } from 'kysely/helpers/postgres'
import { type AuditedChange, type ChangeContext, changes } from '../../audit/changes.ts'
import type { Members } from '../../audit/members.ts'
import type { Context, Database } from '../../context.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame } from '../access.ts'
import { throwErrors } from '../field-errors.ts'
import { timestamp } from '../times.ts'
import { writeView } from './view.ts'

type State = StatusIncident['state']
type Incident = { incident_id: string; title: string; state: State; impact: StatusIncident['impact'] }

/** Throws GAME_NOT_FOUND. */
export async function listIncidents(
  ctx: Context,
  caller: Caller,
  game_id: string,
): Promise<{ incidents: StatusIncident[] }> {
  await requireGame(ctx, caller, game_id)
  const rows = await ctx.db
    .selectFrom('status_incidents')
    .select(['incident_id', 'title', 'state', 'impact', 'create_ts', 'resolve_ts'])
    .select((of) =>
      jsonArrayFrom(
        of
          .selectFrom('status_updates')
          .select(['update_id', 'state', 'text', 'create_ts'])
          .whereRef('status_updates.incident_id', '=', 'status_incidents.incident_id')
          .orderBy('create_ts', 'desc')
          .orderBy('update_id', 'desc')
          .limit(STATUS_UPDATES_MAX),
      ).as('updates'),
    )
    .where('game_id', '=', game_id)
    .orderBy(sql`resolve_ts is not null`)
    .orderBy('create_ts', 'desc')
    .orderBy('incident_id', 'desc')
    .limit(STATUS_INCIDENTS_MAX)
    .execute()
  const incidents = rows.map(({ create_ts, resolve_ts, updates, ...row }) => ({
    ...row,
    create_ts: timestamp(create_ts),
    ...(resolve_ts === null ? {} : { resolve_ts: timestamp(resolve_ts) }),
    // In JSON of the database, a time is a text.
    updates: updates.map((update) => ({ ...update, create_ts: timestamp(new Date(update.create_ts)) })),
  }))
  return { incidents }
}

/** Throws GAME_NOT_FOUND, or VALIDATION_ERROR when the game has the maximum of incidents. */
export async function createIncident(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  { title, impact, state = 'investigating', text }: BodyOf<typeof createOperation>,
): Promise<{ incident_id: string }> {
  const now = new Date(ctx.now())
  const incident_id = newId(ctx.now())
  await changeIncidents(ctx, caller, game_id, async (trx) => {
    const { count } = await trx
      .selectFrom('status_incidents')
      .select(({ fn }) => fn.countAll().as('count'))
      .where('game_id', '=', game_id)
      .executeTakeFirstOrThrow()
    checkRoom(Number(count), STATUS_INCIDENTS_MAX, 'title', 'The game has', 'incidents', 'Delete an old one.')
    await trx
      .insertInto('status_incidents')
      .values({
        ...{ incident_id, game_id, title, state, impact, create_ts: now, update_ts: now },
        resolve_ts: state === 'resolved' ? now : null,
      })
      .execute()
    await addUpdate(ctx, trx, incident_id, { state, text })
    return { before: {}, after: { ...membersOf({ incident_id, title, state, impact }), text } }
  })
  return { incident_id }
}

/** Throws GAME_NOT_FOUND, STATUS_INCIDENT_NOT_FOUND, or VALIDATION_ERROR when the incident has the maximum of updates. */
export async function updateIncident(
  ctx: ChangeContext,
  caller: Caller,
  { game_id, incident_id }: { game_id: string; incident_id: string },
  { state, text, title, impact }: BodyOf<typeof updateOperation>,
): Promise<{ update_id: string }> {
  const now = new Date(ctx.now())
  let update_id = ''
  await changeIncidents(ctx, caller, game_id, async (trx) => {
    const former = await trx
      .selectFrom('status_incidents')
      .selectAll()
      .where('game_id', '=', game_id)
      .where('incident_id', '=', incident_id)
      .forUpdate()
      .executeTakeFirstOrThrow(() => new ApiError('STATUS_INCIDENT_NOT_FOUND'))
    const { count } = await trx
      .selectFrom('status_updates')
      .select(({ fn }) => fn.countAll().as('count'))
      .where('incident_id', '=', incident_id)
      .executeTakeFirstOrThrow()
    checkRoom(Number(count), STATUS_UPDATES_MAX, 'text', 'The incident has', 'updates', 'Write a new incident.')
    const next = { title: title ?? former.title, impact: impact ?? former.impact, state }
    const resolve_ts = state === 'resolved' ? (former.resolve_ts ?? now) : null
    await trx
      .updateTable('status_incidents')
      .set({ ...next, update_ts: now, resolve_ts })
      .where('incident_id', '=', incident_id)
      .execute()
    update_id = await addUpdate(ctx, trx, incident_id, { state, text })
    return { before: membersOf(former), after: { ...membersOf({ incident_id, ...next }), text } }
  })
  return { update_id }
}

/** Throws GAME_NOT_FOUND or STATUS_INCIDENT_NOT_FOUND. */
export async function deleteIncident(
  ctx: ChangeContext,
  caller: Caller,
  { game_id, incident_id }: { game_id: string; incident_id: string },
): Promise<void> {
  await changeIncidents(ctx, caller, game_id, async (trx) => {
    const row = await trx
      .deleteFrom('status_incidents')
      .where('game_id', '=', game_id)
      .where('incident_id', '=', incident_id)
      .returningAll()
      .executeTakeFirstOrThrow(() => new ApiError('STATUS_INCIDENT_NOT_FOUND'))
    return { before: membersOf(row), after: {} }
  })
}

/** One change of a game after the other, so that a count stays true until what rests on it is written. */
async function changeIncidents(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  work: (trx: Database) => Promise<AuditedChange>,
): Promise<void> {
  await requireGame(ctx, caller, game_id)
  await changes(ctx, { game_id }, async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended(${`status ${game_id}`}, 0))`.execute(trx)
    const change = await work(trx)
    await writeView(ctx, trx, game_id)
    return change
  })
  await ctx.listener.notify(CHANNELS.status_pages)
}

async function addUpdate(
  ctx: Context,
  trx: Database,
  incident_id: string,
  { state, text }: { state: State; text: string },
): Promise<string> {
  const update_id = newId(ctx.now())
  await trx
    .insertInto('status_updates')
    .values({ update_id, incident_id, state, text, create_ts: new Date(ctx.now()) })
    .execute()
  return update_id
}

function checkRoom(count: number, max: number, member: string, subject: string, what: string, remedy: string): void {
  if (count < max) return
  const message = `${subject} ${max} ${what}, which is the maximum. ${remedy}`
  throwErrors([{ path: [member], reason: 'too_many', message }])
}

function membersOf({ incident_id, title, state, impact }: Incident): Members {
  return { incident_id, title, state, impact }
}
