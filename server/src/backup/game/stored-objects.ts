// The objects of one game: the files of its completed uploads, in the order of their keys.
import type { ClientBase } from 'pg'

/** Rows read at once. */
const PAGE_ROWS_MAX = 1_000

/** `is_marked`: a role has found it damaged. */
export type GameObject = { object_key: string; content_length: number; sha256: string | null; is_marked: boolean }

export async function* gameObjects(client: ClientBase, game_id: string): AsyncGenerator<GameObject> {
  let after = ''
  for (;;) {
    const { rows } = await client.query<GameObject & { content_length: string }>(
      `select f.object_key, f.content_length, f.sha256,
          exists (select from damaged_objects d where d.object_key = f.object_key) as is_marked
        from upload_files f join uploads u on u.upload_id = f.upload_id
        where u.game_id = $1 and u.complete_ts is not null and f.object_key > $2 order by f.object_key limit $3`,
      [game_id, after, PAGE_ROWS_MAX],
    )
    for (const row of rows) yield { ...row, content_length: Number(row.content_length) }
    if (rows.length < PAGE_ROWS_MAX) return
    after = rows.at(-1)!.object_key
  }
}
