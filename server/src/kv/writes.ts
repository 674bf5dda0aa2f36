// Writes entries. One call is one transaction, which locks the namespace's row of usage. So limits are exact, and revisions
// are in the order of commits.
import { ApiError, KV_VALUE_BYTES_MAX } from '@musterhost/contract'
import { sql, type Transaction } from 'kysely'
import type { Context } from '../context.ts'
import type { Schema } from '../database/schema.ts'
import { directoryOf, requireKey } from './keys.ts'

type Entry = { key: string; value: unknown }
type Trx = Transaction<Schema>

/** Returns the value's text. Throws KV_KEY_VALIDATION_ERROR or KV_VALUE_TOO_LONG, with the path of the member. */
export function requireEntry({ key, value }: Entry, path: readonly string[]): { key: string; text: string } {
  requireKey(key, [...path, 'key'])
  const text = JSON.stringify(value)
  const bytes = Buffer.byteLength(text)
  if (bytes <= KV_VALUE_BYTES_MAX) return { key, text }
  throw new ApiError('KV_VALUE_TOO_LONG', { path: [...path, 'value'], bytes, bytes_max: KV_VALUE_BYTES_MAX })
}

/** Keys are distinct. Throws NAMESPACE_NOT_FOUND or QUOTA_REACHED, and then nothing is written. */
export async function writeEntries(
  ctx: Context,
  namespace_id: string,
  entries: readonly { key: string; text: string }[],
): Promise<void> {
  await ctx.db.transaction().execute(async (trx) => {
    const usage = await lockUsage(trx, namespace_id)
    const before = await sizeOf(
      trx,
      namespace_id,
      entries.map(({ key }) => key),
    )
    const revision = usage.revision + 1
    const added_bytes = entries.reduce(
      (sum, { key, text }) => sum + Buffer.byteLength(key) + Buffer.byteLength(text),
      0,
    )
    const entry_count = usage.entry_count + entries.length - before.entry_count
    const byte_count = usage.byte_count + added_bytes - before.byte_count
    requireRoom('kv_entries', { used: usage.entry_count, wanted: entry_count, limit: ctx.config.kv.entries_max })
    requireRoom('kv_bytes', { used: usage.byte_count, wanted: byte_count, limit: ctx.config.kv.bytes_max })
    await trx
      .insertInto('kv_entries')
      .values(
        entries.map(({ key, text }) => ({
          namespace_id,
          key,
          directory: directoryOf(key),
          value: text,
          revision,
          update_ts: new Date(ctx.now()),
        })),
      )
      .onConflict((conflict) =>
        conflict.columns(['namespace_id', 'key']).doUpdateSet((row) => ({
          value: row.ref('excluded.value'),
          revision: row.ref('excluded.revision'),
          update_ts: row.ref('excluded.update_ts'),
        })),
      )
      .execute()
    await setUsage(trx, { namespace_id, entry_count, byte_count, revision })
  })
}

/** Deletes the existing entries of these keys. Throws NAMESPACE_NOT_FOUND. */
export async function deleteEntries(ctx: Context, namespace_id: string, keys: readonly string[]): Promise<void> {
  await ctx.db.transaction().execute(async (trx) => {
    const usage = await lockUsage(trx, namespace_id)
    const before = await sizeOf(trx, namespace_id, keys)
    if (before.entry_count === 0) return
    await trx.deleteFrom('kv_entries').where('namespace_id', '=', namespace_id).where('key', 'in', keys).execute()
    await setUsage(trx, {
      namespace_id,
      entry_count: usage.entry_count - before.entry_count,
      byte_count: usage.byte_count - before.byte_count,
      revision: usage.revision + 1,
    })
  })
}

type Usage = Schema['kv_usage']

async function lockUsage(trx: Trx, namespace_id: string): Promise<Usage> {
  const lock = () =>
    trx.selectFrom('kv_usage').selectAll().where('namespace_id', '=', namespace_id).forUpdate().executeTakeFirst()
  const usage = await lock()
  if (usage !== undefined) return usage
  // The row of the namespace is locked too, so that it cannot be deleted in between.
  await trx
    .insertInto('kv_usage')
    .columns(['namespace_id', 'entry_count', 'byte_count', 'revision'])
    .expression((from) =>
      from
        .selectFrom('namespaces')
        .where('namespace_id', '=', namespace_id)
        .forKeyShare()
        .select([
          'namespace_id',
          sql<number>`0`.as('entry_count'),
          sql<number>`0`.as('byte_count'),
          sql<number>`0`.as('revision'),
        ]),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const made = await lock()
  if (made === undefined) throw new ApiError('NAMESPACE_NOT_FOUND')
  return made
}

async function setUsage(trx: Trx, { namespace_id, ...usage }: Usage): Promise<void> {
  await trx.updateTable('kv_usage').set(usage).where('namespace_id', '=', namespace_id).execute()
}

async function sizeOf(trx: Trx, namespace_id: string, keys: readonly string[]) {
  return trx
    .selectFrom('kv_entries')
    .where('namespace_id', '=', namespace_id)
    .where('key', 'in', keys)
    .select([
      sql<number>`count(*)`.as('entry_count'),
      sql<number>`coalesce(sum(octet_length(key) + octet_length(value)), 0)`.as('byte_count'),
    ])
    .executeTakeFirstOrThrow()
}

/** A namespace above a lowered limit may still become smaller. */
function requireRoom(quota: string, { used, wanted, limit }: { used: number; wanted: number; limit: number }): void {
  if (wanted <= limit || wanted <= used) return
  const message = `The namespace keeps ${used} of ${limit} ${quota === 'kv_bytes' ? 'bytes' : 'entries'}, and ${wanted} are too many.`
  throw new ApiError('QUOTA_REACHED', { quota, limit, used, wanted }, { message })
}
