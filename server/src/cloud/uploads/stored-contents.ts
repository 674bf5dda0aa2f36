// Contents that a developer group already stores, found by SHA-256 and length. A new upload gets copies of them, so their
// bytes are not sent again. Only complete uploads of the caller's own group are searched: the hash of another group's file
// neither copies it nor reveals that it exists.
import type {
  BodyOf,
  listStoredContents as listStoredContentsOperation,
  PrepareFile,
  ResponseOf,
} from '@musterhost/contract'
import { sql } from 'kysely'
import type { Static } from 'typebox'
import type { Context } from '../../context.ts'
import { newObjectKey, ObjectNotFound } from '../../objects/objects.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame } from '../access.ts'
import { forgetNotes, noteAhead } from '../sweep/removed-objects.ts'
import { diskFull, isDiskFull } from './disk.ts'

/** Objects that one request copies at the same time. */
const COPIES_AT_ONCE_MAX = 16

type Content = { sha256: string; content_length: number }
/** The new object that holds the content of a file, by the index of the file. */
export type ReusedFiles = ReadonlyMap<number, string>

/** Throws GAME_NOT_FOUND. */
export async function listStoredContents(
  ctx: Context,
  caller: Caller,
  game_id: string,
  { contents }: BodyOf<typeof listStoredContentsOperation>,
): Promise<ResponseOf<typeof listStoredContentsOperation>> {
  await requireGame(ctx, caller, game_id)
  const stored = await findStored(ctx, game_id, contents)
  return { stored: contents.filter((content) => stored.has(nameOf(content))) }
}

/**
 * Copies the contents that the group of the game stores already. prepareUpload() makes the copies files of an upload; copies
 * that no upload takes are swept after a day. Throws API_NOT_AVAILABLE when the disk is full.
 */
export async function reuseStored(
  ctx: Context,
  game_id: string,
  files: readonly Static<typeof PrepareFile>[],
): Promise<ReusedFiles> {
  const announced = files.flatMap(({ sha256, content_length }) =>
    sha256 === undefined ? [] : [{ sha256, content_length }],
  )
  const stored = await findStored(ctx, game_id, announced)
  const copies = files.flatMap(({ sha256, content_length }, index) => {
    const from = sha256 === undefined ? undefined : stored.get(nameOf({ sha256, content_length }))
    return from === undefined ? [] : [{ index, from, to: newObjectKey() }]
  })
  await noteAhead(
    ctx,
    copies.map(({ to }) => to),
  )
  const reused = new Map<number, string>()
  const missing: string[] = []
  for (let start = 0; start < copies.length; start += COPIES_AT_ONCE_MAX) {
    const some = copies.slice(start, start + COPIES_AT_ONCE_MAX)
    const are_copied = await Promise.all(some.map(({ from, to }) => copy(ctx, from, to)))
    for (const [position, { index, to }] of some.entries()) {
      if (are_copied[position]) reused.set(index, to)
      else missing.push(to)
    }
  }
  await forgetNotes(ctx.db, missing)
  return reused
}

/** False when the object is gone: its upload was deleted meanwhile, or its bytes were found damaged. */
async function copy(ctx: Context, from: string, to: string): Promise<boolean> {
  try {
    await ctx.objects.copy(from, to)
    return true
  } catch (error) {
    if (error instanceof ObjectNotFound) return false
    throw isDiskFull(error) ? diskFull() : error
  }
}

const nameOf = ({ sha256, content_length }: Content): string => `${sha256} ${content_length}`

/** Returns an object for each content that the group of the game stores, by nameOf(). */
async function findStored(ctx: Context, game_id: string, contents: readonly Content[]): Promise<Map<string, string>> {
  if (contents.length === 0) return new Map()
  const { rows } = await sql<Content & { object_key: string }>`
    select distinct on (file.sha256, file.content_length) file.sha256, file.content_length, file.object_key
    from unnest(
      ${contents.map(({ sha256 }) => sha256)}::text[], ${contents.map((content) => content.content_length)}::bigint[]
    ) as asked (sha256, content_length)
    join upload_files as file on file.sha256 = asked.sha256 and file.content_length = asked.content_length
    join uploads on uploads.upload_id = file.upload_id and uploads.complete_ts is not null
    join games on games.game_id = uploads.game_id
    where games.developer_group_id = (select developer_group_id from games where game_id = ${game_id})
      and not file.is_packed
      and not exists (select from damaged_objects as damaged where damaged.object_key = file.object_key)
    order by file.sha256, file.content_length, file.upload_id desc`.execute(ctx.db)
  return new Map(rows.map((row) => [nameOf(row), row.object_key]))
}
