// One pass of the collector: it finds what happened since the pass before, and puts a notice into the queue of every target that
// wants it. The pass is one transaction with the row of the reader locked, so a notice and the position after it are committed
// together, and two processes never collect at the same time.
import { sql, type Transaction } from 'kysely'
import { mainUrl } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { newId } from '../../ids.ts'
import { type CollectedTarget, isFor } from './audience.ts'
import { findAuditNotices } from './audit-notices.ts'
import { type FoundNotice, type NoticeNames, noticeOf } from './notice.ts'
import { findStateNotices } from './state-notices.ts'

/** Notices that wait for one target. Later ones are dropped and counted. */
const WAITING_MAX = 20_000
/** Pause between two checks of what is wrong now; the audit log is read in every pass. */
const STATES_EVERY_MS = 15_000

/** `away`: another process collects now. `none`: there is no target. */
export type Collected = 'collected' | 'away' | 'none'

export async function collectNotices(ctx: Context, states_every_ms = STATES_EVERY_MS): Promise<Collected> {
  return ctx.db.transaction().execute(async (trx) => {
    const reader = await trx
      .selectFrom('notice_reader')
      .selectAll()
      .where('reader', '=', 1)
      .forUpdate()
      .skipLocked()
      .executeTakeFirst()
    const targets = await readTargets(trx)
    if (reader === undefined) return targets.length === 0 ? 'none' : 'away'
    if (targets.length === 0) {
      await trx.deleteFrom('notice_states').execute()
      await trx.deleteFrom('notice_reader').execute()
      return 'none'
    }
    const now_ms = ctx.now()
    const audit = await findAuditNotices(ctx, reader.audit_ts.getTime())
    const is_due = reader.states_ts === null || Math.abs(now_ms - reader.states_ts.getTime()) >= states_every_ms
    const found = is_due ? await findStateNotices(ctx, trx, targets, reader) : []
    // Read again: a target that was made in the meantime gets what was found after it.
    await putNotices(ctx, trx, await readTargets(trx), [...audit.found, ...found])
    await trx
      .updateTable('notice_reader')
      .set({ audit_ts: new Date(audit.read_ms), ...(is_due ? { states_ts: new Date(now_ms) } : {}) })
      .execute()
    return 'collected'
  })
}

function readTargets(trx: Transaction<Schema>): Promise<CollectedTarget[]> {
  return trx
    .selectFrom('notice_targets')
    .select(['target_id', 'group_id', 'game_id', 'settings', 'create_ts'])
    .execute()
}

async function putNotices(
  ctx: Context,
  trx: Transaction<Schema>,
  targets: readonly CollectedTarget[],
  found: readonly FoundNotice[],
): Promise<void> {
  if (found.length === 0) return
  const names = await readNames(trx, found)
  const members = await readGroupsOf(trx, found)
  for (const target of targets) {
    const wanted = found.filter((one) => isFor(target, one, members))
    if (wanted.length > 0) await putForTarget(ctx, trx, target.target_id, wanted, names)
  }
}

async function putForTarget(
  ctx: Context,
  trx: Transaction<Schema>,
  target_id: string,
  wanted: readonly FoundNotice[],
  names: NoticeNames,
): Promise<void> {
  const origin = mainUrl(ctx.config)
  const rows = wanted
    .toSorted((one, other) => one.ts_ms - other.ts_ms)
    .map((found) => {
      const notice_id = newId(ctx.now())
      return { notice_id, source: found.source, event: found.event, notice: noticeOf(found, notice_id, origin, names) }
    })
  // The numbers are given in the order of the rows.
  const { rows: counts } = await sql<{ dropped_count: number }>`
    with fresh as (
      select r.* from jsonb_array_elements(${JSON.stringify(rows)}::jsonb) with ordinality as e (value, place)
      cross join lateral jsonb_to_record(value || jsonb_build_object('place', place))
        as r (notice_id uuid, source text, event text, notice jsonb, place integer)
      where not exists (select from notices n where n.target_id = ${target_id} and n.source = r.source)
    ), room as (
      select greatest(0, ${WAITING_MAX} - count(*))::integer as free from notices
      where target_id = ${target_id} and state = 'waiting'
    ), ranked as (select *, row_number() over (order by place) as rank from fresh),
    put as (
      insert into notices (notice_id, target_id, source, event, notice, create_ts)
      select notice_id, ${target_id}, source, event, notice, ${new Date(ctx.now())} from ranked, room
      where rank <= free order by place on conflict do nothing
    )
    select greatest(0, (select count(*) from fresh) - free)::integer as dropped_count from room`.execute(trx)
  const { dropped_count } = counts[0]!
  if (dropped_count === 0) return
  await trx
    .updateTable('notice_targets')
    .set(({ eb }) => ({ dropped_count: eb('dropped_count', '+', dropped_count) }))
    .where('target_id', '=', target_id)
    .execute()
}

async function readNames(trx: Transaction<Schema>, found: readonly FoundNotice[]): Promise<NoticeNames> {
  const idsOf = (member: 'group_id' | 'game_id' | 'namespace_id') => [
    ...new Set(found.flatMap((one) => one[member] ?? [])),
  ]
  const { rows } = await sql<{ id: string; name: string }>`
    select group_id as id, display_name as name from groups where group_id = any(${idsOf('group_id')}::uuid[])
    union all select game_id, name_id from games where game_id = any(${idsOf('game_id')}::uuid[])
    union all select namespace_id, name_id from namespaces where namespace_id = any(${idsOf('namespace_id')}::uuid[])`.execute(
    trx,
  )
  return new Map(rows.map(({ id, name }) => [id, name]))
}

async function readGroupsOf(
  trx: Transaction<Schema>,
  found: readonly FoundNotice[],
): Promise<Map<string, Set<string>>> {
  const user_ids = [...new Set(found.flatMap(({ user_id }) => user_id ?? []))]
  if (user_ids.length === 0) return new Map()
  const rows = await trx
    .selectFrom('group_members')
    .select(['user_id', 'group_id'])
    .where('user_id', 'in', user_ids)
    .execute()
  const by_user = Map.groupBy(rows, ({ user_id }) => user_id)
  return new Map([...by_user].map(([user_id, of]) => [user_id, new Set(of.map(({ group_id }) => group_id))]))
}
