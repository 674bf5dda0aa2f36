// The erasure of a player, and the record of it. It runs in bounded batches, each in a statement of its own. A broken erasure is
// repeated, and does the rest. The record has no personal data: a keyed hash finds it again for a person who asks.
//
// The api writes here to tables of the matchmaker, only to rows that have ended: a shard writes an ended row no more.
import { ApiError, ERASURES_MAX, type Erasure } from '@musterhost/contract'
import { sql } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import { newId } from '../../ids.ts'
import { topicOf } from '../../kv/keys.ts'
import { deleteEntries } from '../../kv/writes.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame } from '../access.ts'
import { timestamp } from '../times.ts'
import { bindSubject, PLAYER_SECTIONS } from './sections.ts'
import { findSubject, type PlayerNamed, type PlayerSubject, requireNamed, subjectHashes } from './subject.ts'

const BATCH_ROWS_MAX = 500
/** Batches of one section in one call. */
const BATCHES_MAX = 2_000
/** A shard that is taken over reads rows that ended within 10 minutes, and may write them again. Older ones are written no more. */
const SETTLED_MS = 15 * 60_000
/** Seats that an error names. */
const HOLDERS_NAMED_MAX = 32

type Named = ReturnType<typeof requireNamed>

/** Throws GAME_NOT_FOUND, VALIDATION_ERROR, or IN_USE while the player has a seat. */
export async function erasePlayerData(
  ctx: ChangeContext,
  caller: Caller,
  { game_id, ...body }: { game_id: string } & PlayerNamed,
): Promise<{ erasure: Erasure }> {
  await requireGame(ctx, caller, game_id)
  const named = requireNamed(body)
  const subject = await findSubject(ctx, game_id, named)
  await requireNoSeats(ctx, subject)
  const { erasure_id, counts } = await recordBegin(ctx, game_id, named)
  const settled = new Date(ctx.now() - SETTLED_MS)
  const count = async (name: string, erased: number): Promise<void> => {
    if (erased === 0 && counts[name] !== undefined) return
    counts[name] = (counts[name] ?? 0) + erased
    // An interrupted erasure keeps what it has counted.
    await setRecord(ctx, erasure_id, { counts: JSON.stringify(counts) })
  }
  await count('kv', await eraseEntries(ctx, subject))
  for (const { name, erase } of PLAYER_SECTIONS)
    if (erase !== null) await count(name, await eraseRows(ctx, subject, erase, settled))
  const left_over = JSON.stringify(await leftOf(ctx, subject))
  return { erasure: shown(await setRecord(ctx, erasure_id, { end_ts: new Date(ctx.now()), left_over })) }
}

/** Throws GAME_NOT_FOUND and VALIDATION_ERROR. */
export async function listErasures(
  ctx: Context,
  caller: Caller,
  { game_id, ...query }: { game_id: string } & PlayerNamed,
): Promise<{ erasures: Erasure[] }> {
  await requireGame(ctx, caller, game_id)
  const is_of_player = query.identity_id !== undefined || query.address !== undefined
  const hashes = is_of_player ? subjectHashes(ctx, game_id, requireNamed(query)) : []
  const rows = await ctx.db
    .selectFrom('erasures')
    .selectAll()
    .where('game_id', '=', game_id)
    .$if(is_of_player, (select) => select.where(sql<boolean>`subject_hashes && ${hashes}::text[]`))
    .orderBy('begin_ts', 'desc')
    .limit(ERASURES_MAX)
    .execute()
  return { erasures: rows.map(shown) }
}

function setRecord(
  { db }: Context,
  erasure_id: string,
  values: { counts?: string; left_over?: string; end_ts?: Date },
): Promise<ErasureRow> {
  return db
    .updateTable('erasures')
    .set(values)
    .where('erasure_id', '=', erasure_id)
    .returningAll()
    .executeTakeFirstOrThrow(() => new ApiError('GAME_NOT_FOUND'))
}

type ErasureRow = { erasure_id: string; begin_ts: Date; end_ts: Date | null; counts: unknown; left_over: unknown }

function shown({ erasure_id, begin_ts, end_ts, counts, left_over }: ErasureRow): Erasure {
  return {
    erasure_id,
    begin_ts: timestamp(begin_ts),
    ...(end_ts === null ? {} : { end_ts: timestamp(end_ts) }),
    counts: counts as Erasure['counts'],
    left: left_over as Erasure['left'],
  }
}

async function requireNoSeats({ pool, now }: Context, subject: PlayerSubject): Promise<void> {
  const { namespace_ids, identity_id, client_key } = subject
  const { rows } = await pool.query<{ lobby_id: string }>(
    `select lobby_id from players where namespace_id = any($1) and (identity_id = $2::uuid or client = $3::text)
      and (remove_ts is null or remove_ts > $4) limit ${HOLDERS_NAMED_MAX}`,
    [namespace_ids, identity_id, client_key, new Date(now() - SETTLED_MS)],
  )
  if (rows.length === 0) return
  const held_by = [...new Set(rows.map(({ lobby_id }) => lobby_id))].map((id) => ({ kind: 'lobby', id }))
  const message = `The player has a seat, or had one within ${SETTLED_MS / 60_000} minutes, in lobby ${held_by.map(({ id }) => id).join(', ')}. Repeat the erasure when it has ended.`
  throw new ApiError('IN_USE', { held_by }, { message })
}

/** An erasure of the same player that was interrupted goes on. */
async function recordBegin(
  ctx: ChangeContext,
  game_id: string,
  named: Named,
): Promise<{ erasure_id: string; counts: Record<string, number> }> {
  const subject_hashes = subjectHashes(ctx, game_id, named)
  const now_ms = ctx.now()
  const record = { erasure_id: newId(now_ms), counts: {} as Record<string, number> }
  await changes(ctx, { game_id }, async (trx) => {
    const open = await trx
      .selectFrom('erasures')
      .select(['erasure_id', 'counts'])
      .where('game_id', '=', game_id)
      .where('end_ts', 'is', null)
      .where(sql<boolean>`subject_hashes = ${subject_hashes}::text[]`)
      .executeTakeFirst()
    if (open !== undefined) Object.assign(record, open)
    else {
      const values = {
        game_id,
        subject_hashes,
        begin_ts: new Date(now_ms),
        end_ts: null,
        counts: '{}',
        left_over: '[]',
      }
      await trx
        .insertInto('erasures')
        .values({ ...values, erasure_id: record.erasure_id })
        .execute()
    }
    // The event names the record, not the player.
    return { before: {}, after: { erasure_id: record.erasure_id } }
  })
  return record
}

async function eraseRows({ pool }: Context, subject: PlayerSubject, erase: string, settled: Date): Promise<number> {
  let count = 0
  for (let batch = 0; batch < BATCHES_MAX; batch++) {
    const { rowCount } = await pool.query(bindSubject(erase, subject, { limit: BATCH_ROWS_MAX, settled }))
    count += rowCount ?? 0
    if ((rowCount ?? 0) < BATCH_ROWS_MAX) return count
  }
  throw moreToErase()
}

function moreToErase(): ApiError {
  const message = 'There is more to erase. Repeat the erasure.'
  return new ApiError('API_NOT_AVAILABLE', {}, { message, retry_after_s: 1 })
}

async function eraseEntries(ctx: Context, { identity_id, namespace_ids }: PlayerSubject): Promise<number> {
  if (identity_id === null) return 0
  let count = 0
  for (const namespace_id of namespace_ids) {
    for (let batch = 0; batch < BATCHES_MAX; batch++) {
      const { rows } = await ctx.pool.query<{ key: string }>(
        `select key from kv_entries where namespace_id = $1 and position($2::text in key) > 0 limit ${BATCH_ROWS_MAX}`,
        [namespace_id, identity_id],
      )
      if (rows.length > 0) {
        const keys = rows.map(({ key }) => key)
        await deleteEntries(ctx, namespace_id, keys)
        // Watches of them are woken.
        for (const key of keys) await ctx.listener.notify(CHANNELS.kv, topicOf(namespace_id, key))
      }
      count += rows.length
      if (rows.length < BATCH_ROWS_MAX) break
      if (batch === BATCHES_MAX - 1) throw moreToErase()
    }
  }
  return count
}

/** What stays, and until when. */
async function leftOf(ctx: Context, subject: PlayerSubject): Promise<Erasure['left']> {
  const { config, now } = ctx
  const { player_ids, address } = subject
  const { retention } = config
  const until = (kept_ms: number | null): { until_ts?: string } =>
    kept_ms === null ? {} : { until_ts: timestamp(new Date(now() + kept_ms)) }
  return [
    ...(player_ids.length === 0
      ? []
      : [
          { what: 'lobby_logs' as const, ...until(retention.logs_ms) },
          { what: 'journal' as const, ...until(retention.journal_ms) },
        ]),
    ...(address === null ? [] : [{ what: 'audit_events' as const, ...until(retention.audit_ms) }]),
    ...(address === null ? [] : [{ what: 'captcha_clients' as const }]),
    ...((await isInParty(ctx, subject)) ? [{ what: 'parties' as const }] : []),
    { what: 'backups' as const },
  ]
}

/** A party that has not ended is its shard's. It ends without its members. */
async function isInParty(
  { pool }: Context,
  { namespace_ids, identity_id, client_key }: PlayerSubject,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from parties where namespace_id = any($1) and exists (select from jsonb_array_elements(members) m
      where m->>'identity_id' = $2::text or m->>'client' = $3::text) limit 1`,
    [namespace_ids, identity_id, client_key],
  )
  return rowCount !== 0
}
