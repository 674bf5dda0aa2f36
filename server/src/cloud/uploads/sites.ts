// Sites: the files that the CDN serves. A site is as complete as its upload; a version names it, and a namespace that
// runs the version serves it.
import type { BodyOf, createGameCdnSite, listGameCdnSites, QueryOf, ResponseOf } from '@musterhost/contract'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame } from '../access.ts'
import { cut, isAfter, LIST_MAX } from '../lists.ts'
import { timestamp } from '../times.ts'
import { reuseStored } from './stored-contents.ts'
import { checkUpload, partBytesOf, prepareUpload } from './uploads.ts'

/** Throws GAME_NOT_FOUND, UPLOAD_INVALID, UPLOAD_TOO_LARGE or QUOTA_REACHED. */
export async function createSite(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  body: BodyOf<typeof createGameCdnSite>,
): Promise<ResponseOf<typeof createGameCdnSite>> {
  await requireGame(ctx, caller, game_id)
  const now = ctx.now()
  const site_id = newId(now)
  const { display_name, files } = body
  const part_bytes = partBytesOf(body)
  const pathOf = (index: number): string[] => ['files', String(index), 'path']
  const wanted = { game_id, kind: 'site', files, part_bytes, pathOf } as const
  checkUpload(wanted)
  const reused = await reuseStored(ctx, game_id, files)
  const { response } = await changes(ctx, { game_id }, async (trx) => {
    const upload = await prepareUpload(ctx, trx, { ...wanted, reused })
    const { upload_id } = upload
    await trx
      .insertInto('sites')
      .values({ site_id, game_id, upload_id, display_name, create_ts: new Date(now) })
      .execute()
    const after = { site_id, display_name, file_count: files.length, upload_id }
    return { before: {}, after, response: { site_id, ...upload } }
  })
  return response
}

/** Throws GAME_NOT_FOUND. */
export async function listSites(
  ctx: Context,
  caller: Caller,
  game_id: string,
  { before_site_id, limit = LIST_MAX }: QueryOf<typeof listGameCdnSites>,
): Promise<ResponseOf<typeof listGameCdnSites>> {
  await requireGame(ctx, caller, game_id)
  const found = await ctx.db
    .selectFrom('sites')
    .innerJoin('uploads', 'uploads.upload_id', 'sites.upload_id')
    .select(['sites.site_id', 'sites.upload_id', 'sites.display_name', 'sites.create_ts'])
    .select(['uploads.content_length', 'uploads.complete_ts'])
    .where('sites.game_id', '=', game_id)
    .$if(before_site_id !== undefined, (query) => query.where(isAfter('sites', 'site_id', before_site_id!)))
    .orderBy('sites.create_ts', 'desc')
    .orderBy('sites.site_id', 'desc')
    .limit(limit + 1)
    .execute()
  const { rows, is_cut } = cut(found, limit)
  return {
    is_cut,
    sites: rows.map(({ complete_ts, ...row }) => ({
      ...row,
      create_ts: timestamp(row.create_ts),
      complete: complete_ts !== null,
    })),
  }
}
