// Delivers the notices of a target in their order. One process sends to a target at a time: it holds the target's lease, which
// it renews with every write. When it dies, another process takes the target after the lease, and sends again what was sent
// but not yet recorded. So each notice arrives at least once, and its id shows a repetition.
import { setTimeout as delay } from 'node:timers/promises'
import { putNoticeTarget } from '@musterhost/contract'
import { sql } from 'kysely'
import { asPlatform, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import type { NoticeSettings } from '../../database/schema.ts'
import type { Notice } from './notice.ts'
import { ATTEMPTS_MAX, backoffMs, REFUSALS_MAX } from './outcome.ts'
import type { SendNotice, SendTarget, Sent } from './send.ts'
import { auditScope, openSecrets, ownerGroupOf } from './targets.ts'

/** Notices that are read at once. */
const BATCH_MAX = 100
/** A process that dies has sent at most these, or those of this time, without a record. */
const RECORDS_MAX = 50
const RECORD_MS_MAX = 250
/** A shorter pause is waited for with the lease held. */
const HELD_PAUSE_MS = 2_000
/** Targets that one process sends to at the same time. */
export const TARGETS_AT_ONCE_MAX = 32

/** `lease_ms`: more than a request, its recording and a held pause take. `backoff`: factor of the pauses after failures. */
export type DeliveryTimes = { lease_ms: number; backoff: number }
export const DELIVERY_TIMES: DeliveryTimes = { lease_ms: 120_000, backoff: 1 }

export type Delivery = {
  ctx: Context
  send: SendNotice
  /** Id of this process. */
  owner: string
  times: DeliveryTimes
  signal: AbortSignal
}

type Claimed = SendTarget & { name: string; group_id: string | null; game_id: string | null }
type WaitingNotice = { notice_id: string; attempt_count: number; notice: Notice }
type Attempt = { notice_id: string; attempt_count: number; ts_ms: number; sent: Sent; is_over: boolean }

/** Takes the targets that have something to send and no other owner, at most `count_max`. */
export async function claimTargets({ ctx, owner, times }: Delivery, count_max: number): Promise<Claimed[]> {
  const { rows } = await sql<{
    target_id: string
    name: string
    kind: Claimed['kind']
    group_id: string | null
    game_id: string | null
    settings: NoticeSettings
    secrets: string
  }>`
    update notice_targets set owner = ${owner}, owner_until = now() + make_interval(secs => ${times.lease_ms / 1_000})
    where target_id in (
      select target_id from notice_targets t
      where paused_ts is null and (next_ts is null or next_ts <= now()) and (owner is null or owner_until < now())
        and exists (select from notices n where n.target_id = t.target_id and n.state = 'waiting')
      order by next_ts nulls first limit ${count_max} for update skip locked
    )
    returning target_id, name, kind, group_id, game_id, settings, secrets`.execute(ctx.db)
  return Promise.all(
    rows.map(async ({ secrets, ...row }) => ({
      ...row,
      secrets: openSecrets(ctx, { target_id: row.target_id, secrets }),
      ...(row.settings.chat_id === undefined ? {} : { chat_id: row.settings.chat_id }),
      owner_group_id: await ownerGroupOf(ctx.db, row),
    })),
  )
}

/** Milliseconds until a target that waits is due; null: none waits. */
export async function nextDueMs({ ctx }: Delivery): Promise<number | null> {
  const { rows } = await sql<{ due_ms: number | null }>`
    select extract(epoch from min(greatest(coalesce(next_ts, now()), owner_until)) - now())::float8 * 1000
      as due_ms from notice_targets t where paused_ts is null and exists (
      select from notices n where n.target_id = t.target_id and n.state = 'waiting'
    )`.execute(ctx.db)
  const due_ms = rows[0]?.due_ms ?? null
  return due_ms === null ? null : Math.max(0, Math.ceil(due_ms))
}

/** Sends what waits, until nothing does, the target fails or is lost to another owner, or `signal`. Gives the target back. */
export async function deliverTarget(delivery: Delivery, target: Claimed): Promise<void> {
  let next_ms = 0
  try {
    for (;;) {
      const waiting = await readWaiting(delivery, target.target_id)
      if (waiting.length === 0) return
      const end = await deliverBatch(delivery, target, waiting)
      if (end === 'sent') continue
      if (typeof end === 'number') next_ms = end
      return
    }
  } finally {
    await release(delivery, target.target_id, next_ms)
  }
}

/** Empty when nothing waits, and when another process has taken the target. */
async function readWaiting({ ctx, owner, times }: Delivery, target_id: string): Promise<WaitingNotice[]> {
  const { rows } = await sql<WaitingNotice>`
    with held as (
      update notice_targets set owner_until = now() + make_interval(secs => ${times.lease_ms / 1_000})
      where target_id = ${target_id} and owner = ${owner} returning target_id
    )
    select notice_id, attempt_count, notice from notices join held using (target_id)
    where state = 'waiting' order by number limit ${BATCH_MAX}`.execute(ctx.db)
  return rows
}

/** A number: the pause before the next notice. `lost`: another process has the target. `stopped`: it was paused. */
type BatchEnd = number | 'sent' | 'lost' | 'stopped'

async function deliverBatch(delivery: Delivery, target: Claimed, waiting: readonly WaitingNotice[]): Promise<BatchEnd> {
  const { ctx, signal } = delivery
  /** The last attempt of each notice that is not recorded yet. */
  const attempts = new Map<string, Attempt>()
  let recorded_ms = ctx.elapsed()
  const record = async (): Promise<boolean> => {
    const unrecorded = [...attempts.values()]
    attempts.clear()
    recorded_ms = ctx.elapsed()
    return recordAttempts(delivery, target.target_id, unrecorded)
  }
  const isDue = () => attempts.size >= RECORDS_MAX || ctx.elapsed() - recorded_ms >= RECORD_MS_MAX
  for (const { notice_id, attempt_count, notice } of waiting) {
    for (let count = attempt_count, is_over = false; !is_over; ) {
      if (isDue() && !(await record())) return 'lost'
      if (signal.aborted) return (await record()) ? 0 : 'lost'
      const sent = await delivery.send(target, notice, signal)
      const { kind } = sent.outcome
      // The request was cut off, which says nothing about the target.
      if (signal.aborted && kind === 'retry') continue
      // A target that asks to wait has not failed.
      if (kind !== 'wait') count++
      is_over = kind === 'delivered' || (kind === 'refused' && count >= REFUSALS_MAX)
      attempts.set(notice_id, { notice_id, attempt_count: count, ts_ms: ctx.now(), sent, is_over })
      if (kind === 'delivered') continue
      const pause_ms = pauseOf(sent, count, delivery.times.backoff)
      const is_held = pause_ms !== null && pause_ms <= HELD_PAUSE_MS
      if (!is_held && !(await record())) return 'lost'
      if (pause_ms === null) {
        // One notice that is refused may be at fault itself. Several in a row are the target's fault.
        if (is_over && (await refusedInARow(delivery, target.target_id)) < REFUSALS_MAX) continue
        await pause(delivery, target, sentenceOf(sent))
        return 'stopped'
      }
      if (!is_held) return pause_ms
      if (pause_ms > 0) await delay(pause_ms, undefined, { signal }).catch(() => {})
    }
  }
  return (await record()) ? 'sent' : 'lost'
}

/** Null: it has failed too often. `count`: attempts of the notice. */
function pauseOf({ outcome }: Sent, count: number, factor: number): number | null {
  if (outcome.kind === 'wait') return outcome.wait_ms
  return count < (outcome.kind === 'retry' ? ATTEMPTS_MAX : REFUSALS_MAX) ? backoffMs(count, factor) : null
}

function sentenceOf({ status, response }: Sent): string {
  return status === null ? response : `It returned ${status}: ${response}`
}

async function refusedInARow({ ctx: { db } }: Delivery, target_id: string): Promise<number> {
  const rows = await db
    .selectFrom('notices')
    .select('state')
    .where('target_id', '=', target_id)
    .where('end_ts', 'is not', null)
    .orderBy('end_ts', 'desc')
    .limit(REFUSALS_MAX)
    .execute()
  const at = rows.findIndex(({ state }) => state !== 'failed')
  return at === -1 ? rows.length : at
}

/** Returns false when another process has taken the target. */
async function recordAttempts(
  { ctx: { db }, owner, times }: Delivery,
  target_id: string,
  attempts: readonly Attempt[],
): Promise<boolean> {
  if (attempts.length === 0) return true
  const rows = attempts.map(({ notice_id, attempt_count, ts_ms, sent, is_over }) => {
    const is_delivered = sent.outcome.kind === 'delivered'
    const state = is_delivered ? 'delivered' : is_over ? 'failed' : 'waiting'
    const ts = new Date(ts_ms)
    return { notice_id, attempt_count, state, ts, status: sent.status, response: sent.response }
  })
  const { rows: held } = await sql<{ delivery_ts: Date }>`
    with held as (
      update notice_targets set owner_until = now() + make_interval(secs => ${times.lease_ms / 1_000}),
        delivery_ts = coalesce(${rows.findLast(({ state }) => state === 'delivered')?.ts ?? null}, delivery_ts)
      where target_id = ${target_id} and owner = ${owner} returning target_id
    ), done as (
      update notices n set state = r.state, attempt_count = r.attempt_count, last_ts = r.ts, status = r.status,
        response = r.response, end_ts = case when r.state <> 'waiting' then r.ts end
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
        as r (notice_id uuid, attempt_count integer, state text, ts timestamptz, status integer, response text)
      where n.notice_id = r.notice_id and n.target_id = ${target_id} and n.state = 'waiting' and exists (select from held)
    )
    select * from held`.execute(db)
  return held.length > 0
}

async function release({ ctx: { db, log }, owner }: Delivery, target_id: string, next_ms: number): Promise<void> {
  try {
    await sql`
      update notice_targets set owner = null, owner_until = null,
        next_ts = case when ${next_ms}::float8 > 0 then now() + make_interval(secs => ${next_ms / 1_000}) end
      where target_id = ${target_id} and owner = ${owner}`.execute(db)
  } catch (error) {
    log.warn({ err: error, target_id }, 'a target of notices could not be given back; its lease ends it')
  }
}

/** The audit event says why; other targets get a notice, and the overview shows the pause. */
async function pause({ ctx, owner }: Delivery, target: Claimed, reason: string): Promise<void> {
  const { target_id, name, kind } = target
  await changes(asPlatform(ctx, putNoticeTarget.id), auditScope(target), async (trx) => {
    const { numUpdatedRows } = await trx
      .updateTable('notice_targets')
      .set({ paused_ts: new Date(ctx.now()), pause_reason: reason })
      .where('target_id', '=', target_id)
      .where('owner', '=', owner)
      .executeTakeFirst()
    if (numUpdatedRows === 0n) return null
    const after = { target_id, name, kind, is_paused: true, pause_reason: reason }
    return { before: { is_paused: false }, after }
  })
  ctx.log.warn({ target_id, kind, reason }, 'a target of notices is paused')
}
