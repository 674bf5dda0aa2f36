// The last notices of a target: what became of each, sending one again, and a test.
import {
  ApiError,
  type listNoticeDeliveries as listOperation,
  type QueryOf,
  type ResponseOf,
  type testNoticeTarget as testOperation,
} from '@musterhost/contract'
import { sql } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import { mainUrl } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { cut } from '../lists.ts'
import { timestamp } from '../times.ts'
import type { Notice } from './notice.ts'
import { createSend } from './send.ts'
import { auditScope, openSecrets, ownerGroupOf, requireTarget } from './targets.ts'

const DELIVERIES_DEFAULT = 50

type Delivery = ResponseOf<typeof testOperation>['delivery']

/** Throws NOTICE_TARGET_NOT_FOUND. */
export async function listDeliveries(
  ctx: Context,
  caller: Caller,
  target_id: string,
  { limit = DELIVERIES_DEFAULT }: QueryOf<typeof listOperation>,
): Promise<ResponseOf<typeof listOperation>> {
  await requireTarget(ctx, caller, target_id)
  const found = await deliveriesOf(ctx, target_id)
    .orderBy('number', 'desc')
    .limit(limit + 1)
    .execute()
  const { rows, is_cut } = cut(found, limit)
  return { deliveries: rows.map(deliveryOf), is_cut }
}

/** Throws NOTICE_TARGET_NOT_FOUND or NOTICE_NOT_FOUND. */
export async function resend(
  ctx: ChangeContext,
  caller: Caller,
  { target_id, notice_id }: { target_id: string; notice_id: string },
): Promise<void> {
  const scope = await requireTarget(ctx, caller, target_id)
  await changes(ctx, auditScope(scope), async (trx) => {
    const again = { state: 'waiting' as const, end_ts: null, attempt_count: 0 }
    const row = await trx
      .updateTable('notices')
      // After those that wait now.
      .set({ ...again, number: sql<number>`nextval(pg_get_serial_sequence('notices', 'number'))` })
      .where('target_id', '=', target_id)
      .where('notice_id', '=', notice_id)
      .returning('notice_id')
      .executeTakeFirstOrThrow(() => new ApiError('NOTICE_NOT_FOUND'))
    return { before: {}, after: { target_id, ...row } }
  })
  await ctx.listener.notify(CHANNELS.notices)
}

/** Sends at once, beside the queue. Throws NOTICE_TARGET_NOT_FOUND. */
export async function testTarget(
  ctx: ChangeContext,
  caller: Caller,
  target_id: string,
): Promise<{ delivery: Delivery }> {
  const scope = await requireTarget(ctx, caller, target_id)
  const row = await ctx.db
    .selectFrom('notice_targets')
    .selectAll()
    .where('target_id', '=', target_id)
    .executeTakeFirstOrThrow(() => new ApiError('NOTICE_TARGET_NOT_FOUND'))
  const target = {
    ...row,
    secrets: openSecrets(ctx, row),
    ...(row.settings.chat_id === undefined ? {} : { chat_id: row.settings.chat_id }),
    owner_group_id: await ownerGroupOf(ctx.db, row),
  }
  const notice = testNotice(ctx, row)
  const { outcome, status, response } = await createSend(ctx)(target, notice)
  const is_delivered = outcome.kind === 'delivered'
  const now = new Date(ctx.now())
  const { notice_id } = notice
  await changes(ctx, auditScope(scope), async (trx) => {
    await trx
      .insertInto('notices')
      .values({
        ...{ notice_id, target_id, source: `test ${notice_id}`, event: 'test', notice: JSON.stringify(notice) },
        ...{
          create_ts: now,
          state: is_delivered ? 'delivered' : 'failed',
          end_ts: now,
          attempt_count: 1,
          last_ts: now,
        },
        ...{ status, response },
      })
      .execute()
    if (is_delivered) {
      await trx.updateTable('notice_targets').set({ delivery_ts: now }).where('target_id', '=', target_id).execute()
    }
    return { before: {}, after: { target_id, notice_id, is_delivered } }
  })
  const stored = await deliveriesOf(ctx, target_id).where('notice_id', '=', notice_id).executeTakeFirstOrThrow()
  return { delivery: deliveryOf(stored) }
}

function testNotice(
  ctx: Context,
  { name, group_id, game_id }: { name: string; group_id: string | null; game_id: string | null },
): Notice {
  const origin = mainUrl(ctx.config)
  const of = game_id === null ? (group_id === null ? '/platform' : `/groups/${group_id}`) : `/games/${game_id}`
  return {
    notice_id: newId(ctx.now()),
    event: 'test',
    severity: 'info',
    title: 'A test notice',
    text: `The target ${name} takes notices.`,
    ts: new Date(ctx.now()).toISOString(),
    platform: origin,
    url: `${origin}${of}/notices`,
    ...auditScope({ group_id, game_id }),
  }
}

function deliveriesOf({ db }: Context, target_id: string) {
  return db
    .selectFrom('notices')
    .select(['notice_id', 'event', 'notice', 'state', 'create_ts', 'attempt_count', 'last_ts', 'status', 'response'])
    .where('target_id', '=', target_id)
}

type Row = Awaited<ReturnType<ReturnType<typeof deliveriesOf>['execute']>>[number]

function deliveryOf({ notice, create_ts, last_ts, status, response, ...row }: Row): Delivery {
  return {
    notice_id: row.notice_id,
    event: row.event as Delivery['event'],
    title: String(notice.title),
    state: row.state,
    create_ts: timestamp(create_ts),
    attempt_count: row.attempt_count,
    ...(last_ts === null ? {} : { last_ts: timestamp(last_ts) }),
    ...(status === null ? {} : { status }),
    ...(response === null ? {} : { response }),
  }
}
