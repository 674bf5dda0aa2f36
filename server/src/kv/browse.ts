// Reads for people who look through the entries of a namespace: its directories, and keys with a beginning. Each page reads a
// limited number of rows by an index, however many entries there are.
import {
  type listKvDirectories,
  type listKvKeys,
  type QueryOf,
  type ResponseOf,
  validationError,
} from '@musterhost/contract'
import type { Context } from '../context.ts'

/** Directories or keys on a page. */
const PAGE_MAX = 256
/** Sorts after every text that begins like the one before it: no key of JSON text contains a larger character. */
const LAST = '\u{10ffff}'

/** Each step of the recursion jumps to the next directory in the index, so that its entries are not read. */
export async function listDirectories(
  { pool }: Context,
  namespace_id: string,
  { prefix = '', anchor }: QueryOf<typeof listKvDirectories>,
): Promise<ResponseOf<typeof listKvDirectories>> {
  requireNoNul({ prefix, anchor })
  const { rows } = await pool.query<{ directory: string }>(
    `with recursive found (directory, number) as (
        (
          select directory, 1 from kv_entries
          where namespace_id = $1 and directory >= $2 and directory <= $3 and ($4::text is null or directory > $4)
          order by directory limit 1
        )
        union all
        select next.directory, found.number + 1 from found cross join lateral (
          select directory from kv_entries
          where namespace_id = $1 and directory > found.directory and directory <= $3 order by directory limit 1
        ) as next
        where found.number <= ${PAGE_MAX}
      )
      select directory from found order by number`,
    [namespace_id, prefix, `${prefix}${LAST}`, anchor ?? null],
  )
  const directories = rows.slice(0, PAGE_MAX).map(({ directory }) => directory)
  return { directories, ...(rows.length > PAGE_MAX ? { anchor: directories.at(-1)! } : {}) }
}

type KeyRow = { key: string; value_bytes: number; update_ts: Date }

export async function listKeys(
  { pool }: Context,
  namespace_id: string,
  { prefix = '', anchor }: QueryOf<typeof listKvKeys>,
): Promise<ResponseOf<typeof listKvKeys>> {
  requireNoNul({ prefix, anchor })
  const { rows } = await pool.query<KeyRow>(
    `select key, octet_length(value) as value_bytes, update_ts from kv_entries
      where namespace_id = $1 and key >= $2 and key <= $3 and ($4::text is null or key > $4)
      order by key limit ${PAGE_MAX + 1}`,
    [namespace_id, prefix, `${prefix}${LAST}`, anchor ?? null],
  )
  const keys = rows.slice(0, PAGE_MAX).map(({ update_ts, ...key }) => ({ ...key, update_ts: update_ts.toISOString() }))
  return { keys, ...(rows.length > PAGE_MAX ? { anchor: keys.at(-1)!.key } : {}) }
}

/** PostgreSQL has no text with NUL. */
function requireNoNul(texts: Record<string, string | undefined>): void {
  for (const [name, text] of Object.entries(texts)) {
    if (!text?.includes('\u0000')) continue
    throw validationError([
      { path: ['query', name], reason: 'invalid', message: `${name} contains NUL; leave it out.` },
    ])
  }
}
