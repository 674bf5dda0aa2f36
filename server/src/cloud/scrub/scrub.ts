// The scrub reads every stored file once in `check_ms` and compares it with its recorded hash; it confirms what readers have
// marked as damaged, and repairs what can be repaired (marked.ts). How far it is stands in the rows: each has the time of its
// last check, so it goes on after a restart. It reads slowly (objects/pace.ts), and in one api process at a time.
import { sql } from 'kysely'
import type { Context } from '../../context.ts'
import { reportDamage } from '../../database/damaged-objects.ts'
import { watchChannel } from '../../database/poller.ts'
import { digestSound, ObjectDamaged, type Recorded } from '../../objects/damage.ts'
import { type Digest, hasBlockHashes } from '../../objects/digest.ts'
import { createPace } from '../../objects/pace.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { settleMarks } from './marked.ts'
import { reportScrub } from './report.ts'

const SCRUB_EVERY_MS = 60_000
/** Files between two reads of the marks. */
const BATCH_FILES_MAX = 50
/** Bytes read between two reads of the marks. */
const BATCH_BYTES_MAX = 64 * 1024 * 1024
/** In one run; the rest is for the next. */
const BATCHES_MAX = 10_000
/** Any number, but always this one: of the advisory lock that one scrub holds. */
const LOCK_KEY = '7365882112'

type StoredFile = Recorded & { block_hashes: Buffer | null; is_sent_in_parts: boolean }

export type Scrub = { stop: () => Promise<void> }

export function startScrub(ctx: Context): Scrub {
  const closing = new AbortController()
  reportScrub(ctx)
  const watch = watchChannel(ctx, {
    channel: CHANNELS.damaged_objects,
    every_ms: SCRUB_EVERY_MS,
    run: () => scrub(ctx, closing.signal),
    failure: 'stored files could not be checked; trying again',
  })
  return {
    stop() {
      closing.abort()
      return watch.close()
    },
  }
}

/** Settles all marks and checks all files that are due. Returns early when another process does it already. */
export async function scrub(ctx: Context, signal: AbortSignal = new AbortController().signal): Promise<void> {
  const pace = createPace(signal)
  try {
    for (let batch = 0; batch < BATCHES_MAX; batch++) {
      const checked = await whileAlone(ctx, async () => {
        await settleMarks(ctx, batch === 0 ? 'all' : 'suspected', pace)
        return checkSome(ctx, pace)
      })
      if (checked === null || checked === 0) return
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Null, and nothing has been done, while another process is at it. The lock ends with its transaction. */
function whileAlone<T>(ctx: Context, work: () => Promise<T>): Promise<T | null> {
  return ctx.db.transaction().execute(async (trx) => {
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(trx)
    const { rows } = await sql<{ is_free: boolean }>`
      select pg_try_advisory_xact_lock(${LOCK_KEY}::bigint) as is_free`.execute(trx)
    return rows[0]?.is_free === true ? work() : null
  })
}

/** Returns how many files were checked. */
async function checkSome(ctx: Context, pace: (bytes: number) => Promise<void>): Promise<number> {
  const { check_ms } = ctx.config
  if (check_ms === null) return 0
  const files = await readDue(ctx, new Date(ctx.now() - check_ms))
  let count = 0
  let bytes = 0
  for (const file of files) {
    if (bytes >= BATCH_BYTES_MAX) break
    count++
    bytes += file.content_length
    await checkFile(ctx, file, pace)
  }
  return count
}

/** Reads the files whose check is due, the one checked longest ago first, without files that are marked as damaged. */
async function readDue(ctx: Context, before: Date): Promise<StoredFile[]> {
  return ctx.db
    .selectFrom('upload_files')
    .innerJoin('uploads', 'uploads.upload_id', 'upload_files.upload_id')
    .select(['object_key', 'upload_files.content_length', 'sha256', 'block_hashes'])
    .select(sql<boolean>`uploads.kind <> 'build'`.as('is_sent_in_parts'))
    .where('sha256', 'is not', null)
    .where('uploads.complete_ts', 'is not', null)
    .where((of) => of.or([of('checked_ts', 'is', null), of('checked_ts', '<', before)]))
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('damaged_objects').whereRef('damaged_objects.object_key', '=', 'upload_files.object_key'))),
    )
    .orderBy('checked_ts', (order) => order.asc().nullsFirst())
    .limit(BATCH_FILES_MAX)
    .execute()
}

async function checkFile(ctx: Context, file: StoredFile, pace: (bytes: number) => Promise<void>): Promise<void> {
  try {
    const digest = await digestSound(ctx.objects, file, pace)
    ctx.metrics.bytes_checked.inc(digest.content_length)
    await recordCheck(ctx, file, digest)
  } catch (error) {
    if (!(error instanceof ObjectDamaged)) throw error
    // The next round reads it a second time. A file that is about to be removed gets no mark, and is not checked again.
    await reportDamage(ctx, error)
    await ctx.db
      .updateTable('upload_files')
      .set({ checked_ts: new Date(ctx.now()) })
      .where('object_key', '=', file.object_key)
      .execute()
  }
}

/** Also the hashes of blocks, where they were not recorded when the upload was completed, or have changed since. */
async function recordCheck(ctx: Context, file: StoredFile, { block_hashes }: Digest): Promise<void> {
  const needs_list = file.is_sent_in_parts && hasBlockHashes(file.content_length)
  const is_listed = block_hashes !== null && file.block_hashes?.equals(block_hashes) === true
  await ctx.db
    .updateTable('upload_files')
    .set({ checked_ts: new Date(ctx.now()), ...(needs_list && !is_listed ? { block_hashes } : {}) })
    .where('object_key', '=', file.object_key)
    .execute()
}
