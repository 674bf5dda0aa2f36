// The objects that the database speaks of: the files of completed uploads, which never change. Files of an upload that is
// not complete are their sender's to send again; objects that no row names are on their way out.
import type { ClientBase } from 'pg'

/** Rows of stored files read at once. */
const PAGE_ROWS_MAX = 1_000

/** `origin`: what it is, for people. `is_marked`: a role has found it damaged; then it may have been set aside. */
export type StoredFile = {
  object_key: string
  content_length: number
  sha256: string | null
  origin: string
  is_marked: boolean
}

/** In the order of their keys, as the transaction of the caller sees them. `game_id`: only of this game; null: of all. */
export async function* storedFiles(client: ClientBase, game_id: string | null = null): AsyncGenerator<StoredFile> {
  // A database of an earlier version is backed up too, before it is migrated.
  const marks = await client.query<{ are_there: boolean }>(
    "select to_regclass('damaged_objects') is not null as are_there",
  )
  const is_marked = marks.rows[0]?.are_there
    ? 'exists (select from damaged_objects d where d.object_key = f.object_key)'
    : 'false'
  let after = ''
  for (;;) {
    const { rows } = await client.query<StoredFile & { content_length: string }>(
      `select f.object_key, f.content_length, f.sha256, ${is_marked} as is_marked,
          format('%s, of a %s (upload %s) of the game %s', to_json(f.path), u.kind, u.upload_id, g.name_id) as origin
        from upload_files f join uploads u on u.upload_id = f.upload_id join games g on g.game_id = u.game_id
        where u.complete_ts is not null and ($3::uuid is null or u.game_id = $3) and f.object_key > $1
        order by f.object_key limit $2`,
      [after, PAGE_ROWS_MAX, game_id],
    )
    for (const row of rows) yield { ...row, content_length: Number(row.content_length) }
    if (rows.length < PAGE_ROWS_MAX) return
    after = rows.at(-1)!.object_key
  }
}
