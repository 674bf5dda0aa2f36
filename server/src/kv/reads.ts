// Reads entries. A value is returned as its stored text. A watching client sends an index of its own state: the revision of
// each requested key, in order. So the platform keeps no state for it, and a key that was deleted and written again differs.
import { validationError } from '@musterhost/contract'
import { sql } from 'kysely'
import type { Context } from '../context.ts'
import { directoryNamed } from './keys.ts'

/** Entries on a page of a list. */
const PAGE_MAX = 256
/** Bytes of entries on a page of a list. */
const PAGE_BYTES_MAX = 4 * 1024 * 1024

export type StoredEntry = { key: string; value: string; revision: number }

/** The existing entries of these keys. */
export async function readEntries(ctx: Context, namespace_id: string, keys: readonly string[]): Promise<StoredEntry[]> {
  return ctx.db
    .selectFrom('kv_entries')
    .where('namespace_id', '=', namespace_id)
    .where('key', 'in', keys)
    .select(['key', 'value', 'revision'])
    .orderBy('key')
    .execute()
}

/** The revisions of existing keys, which a watch reads repeatedly. */
export async function readRevisions(
  ctx: Context,
  namespace_id: string,
  keys: readonly string[],
): Promise<Map<string, number>> {
  const rows = await ctx.db
    .selectFrom('kv_entries')
    .where('namespace_id', '=', namespace_id)
    .where('key', 'in', keys)
    .select(['key', 'revision'])
    .execute()
  return new Map(rows.map(({ key, revision }) => [key, revision]))
}

/** 0 stands for a key without an entry. */
export function indexOf(keys: readonly string[], revisions: ReadonlyMap<string, number>): string {
  return keys.map((key) => (revisions.get(key) ?? 0).toString(36)).join('.')
}

/** Throws VALIDATION_ERROR when the index does not fit the keys. */
export function readIndex(index: string, keys: readonly string[]): Map<string, number> {
  const parts = index.split('.')
  if (parts.length !== keys.length || parts.some((part) => !/^(0|[1-9a-z][0-9a-z]{0,10})$/.test(part))) {
    const message = 'watch_index was not returned for these keys.'
    throw validationError([{ path: ['query', 'watch_index'], reason: 'invalid', message }])
  }
  return new Map(keys.map((key, i) => [key, Number.parseInt(parts[i]!, 36)]))
}

/** The entries of a directory after the key `anchor`, and whether there are more. */
export async function readDirectory(
  ctx: Context,
  namespace_id: string,
  directory: string,
  anchor: string | undefined,
): Promise<{ entries: StoredEntry[]; has_more: boolean }> {
  const candidates = ctx.db
    .selectFrom('kv_entries')
    .where('namespace_id', '=', namespace_id)
    .where('directory', '=', directoryNamed(directory))
    .$if(anchor !== undefined, (query) => query.where('key', '>', anchor!))
    .select(['key', 'value', 'revision'])
    .orderBy('key')
    .limit(PAGE_MAX + 1)
  const rows = await ctx.db
    .with('candidates', () => candidates)
    .with('measured', (query) =>
      query
        .selectFrom('candidates')
        .select([
          'key',
          'value',
          'revision',
          sql<number>`sum(octet_length(value)) over (order by key) - octet_length(value)`.as('bytes_before'),
          sql<number>`count(*) over ()`.as('count'),
        ]),
    )
    .selectFrom('measured')
    .where('bytes_before', '<', PAGE_BYTES_MAX)
    .select(['key', 'value', 'revision', 'count'])
    .orderBy('key')
    .limit(PAGE_MAX)
    .execute()
  return { entries: rows, has_more: rows.length > 0 && rows.length < rows[0]!.count }
}
