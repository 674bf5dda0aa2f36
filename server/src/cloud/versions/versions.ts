// Versions: a version config under a name that is unique in its game. Created once, never changed; what a namespace
// runs is changed by moving it to another version.
import {
  ApiError,
  type BodyOf,
  CAPTCHA_PROVIDERS,
  CAPTCHA_TEST_SECRETS,
  type createGameVersion,
  type ErrorDetail,
  type listGameVersions,
  type QueryOf,
  type ResponseOf,
  VERSION_DISPLAY_NAME_LENGTH_MAX,
  VersionConfig,
  type VersionFull,
  type VersionSummary,
} from '@musterhost/contract'
import { createShapeCheck } from '@musterhost/contract/schema-check'
import { withOneName } from '@musterhost/contract/version-check'
import { sql } from 'kysely'
import type { Static } from 'typebox'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { closeConfig } from '../../tokens/version-secrets.ts'
import { requireGame } from '../access.ts'
import { checkDisplayName, notUnique, orNameTaken, throwErrors } from '../field-errors.ts'
import { cut, isAfter, LIST_MAX } from '../lists.ts'
import { lockGroupOf } from '../quotas.ts'
import { timestamp } from '../times.ts'
import { checkConfig } from './check.ts'
import { findHostWarnings } from './host-warnings.ts'

const checkShape = createShapeCheck(VersionConfig)

const nameTaken = (display_name: string): ErrorDetail =>
  notUnique(['display_name'], `The game has a version ${JSON.stringify(display_name)} already.`)

/** Throws GAME_NOT_FOUND, VALIDATION_ERROR or NAME_TAKEN. */
export async function createVersion(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  body: BodyOf<typeof createGameVersion>,
): Promise<{ version_id: string; warnings: ErrorDetail[] }> {
  await requireGame(ctx, caller, game_id)
  throwErrors(await checkVersion(ctx, game_id, body))
  const now = ctx.now()
  const version_id = newId(now)
  const { display_name } = body
  await orNameTaken(nameTaken(display_name), () =>
    changes(ctx, { game_id }, async (trx) => {
      // The deletion of a build or a site locks the group as well: what was checked before is checked again.
      await lockGroupOf(trx, game_id)
      throwErrors(await checkConfig({ ...ctx, db: trx }, game_id, body.config))
      const { config, secrets } = closeConfig(ctx.seals, version_id, withOneName(body.config), now)
      await trx
        .insertInto('versions')
        .values({
          version_id,
          game_id,
          display_name,
          config: JSON.stringify(config),
          secrets,
          create_ts: new Date(now),
        })
        .execute()
      return { before: {}, after: { version_id, display_name } }
    }),
  )
  warnOfTestSecrets(ctx, version_id, body.config)
  return { version_id, warnings: await findHostWarnings(ctx, body.config) }
}

/** Only in development; in production they are refused. */
function warnOfTestSecrets(ctx: Context, version_id: string, config: VersionConfig): void {
  const captcha = config.matchmaker?.captcha
  for (const provider of CAPTCHA_PROVIDERS) {
    if (!CAPTCHA_TEST_SECRETS.has(captcha?.[provider]?.secret_key ?? '')) continue
    ctx.log.warn({ version_id, provider }, 'the captcha has a published test secret: it keeps nobody out')
  }
}

/** Throws GAME_NOT_FOUND. Returns what createVersion would throw, and would warn of. */
export async function validateVersion(
  ctx: Context,
  caller: Caller,
  game_id: string,
  draft: { display_name: string; config: unknown },
): Promise<{ errors: ErrorDetail[]; warnings: ErrorDetail[] }> {
  await requireGame(ctx, caller, game_id)
  const errors = await checkVersion(ctx, game_id, draft)
  const has_shape = checkShape(draft.config).length === 0
  return { errors, warnings: has_shape ? await findHostWarnings(ctx, draft.config as VersionConfig) : [] }
}

/** Throws GAME_NOT_FOUND. Counts on from the highest such name that the game has, given out or chosen by hand. */
export async function reserveName(ctx: Context, caller: Caller, game_id: string): Promise<string> {
  await requireGame(ctx, caller, game_id)
  const { rows } = await sql<{ version_number: number }>`
    update games set version_number = 1 + greatest(version_number, (
      select max(substring(display_name from '^v([0-9]{1,9})$')::bigint) from versions
      where versions.game_id = games.game_id
    ))
    where game_id = ${game_id} returning version_number
  `.execute(ctx.db)
  const row = rows[0]
  if (row === undefined) throw new ApiError('GAME_NOT_FOUND')
  return `v${row.version_number}`
}

async function checkVersion(
  ctx: Context,
  game_id: string,
  draft: { display_name: string; config: unknown },
): Promise<ErrorDetail[]> {
  const errors = checkDisplayName(draft.display_name, VERSION_DISPLAY_NAME_LENGTH_MAX)
  if (errors.length === 0) {
    const twin = await ctx.db
      .selectFrom('versions')
      .select('version_id')
      .where('game_id', '=', game_id)
      .where('display_name', '=', draft.display_name)
      .executeTakeFirst()
    if (twin !== undefined) errors.push(nameTaken(draft.display_name))
  }
  const shape = checkShape(draft.config)
  if (shape.length > 0) return [...errors, ...shape.map(named)]
  return [...errors, ...(await checkConfig(ctx, game_id, draft.config as VersionConfig))]
}

/** An error of the config as a whole gets the path of the member that contains it. */
function named(detail: ErrorDetail): ErrorDetail {
  return detail.path.length === 0 ? { ...detail, path: ['config'] } : detail
}

export async function listVersions(
  ctx: Context,
  game_id: string,
): Promise<{ rows: Static<typeof VersionSummary>[]; is_cut: boolean }> {
  const rows = await ctx.db
    .selectFrom('versions')
    .select(['version_id', 'create_ts', 'display_name'])
    .where('game_id', '=', game_id)
    .orderBy('create_ts', 'desc')
    .orderBy('version_id', 'desc')
    .limit(LIST_MAX + 1)
    .execute()
  return cut(rows.map((row) => ({ ...row, create_ts: timestamp(row.create_ts) })))
}

/** Page by page, newest first, with the namespaces that use each. Throws GAME_NOT_FOUND. */
export async function listVersionPage(
  ctx: Context,
  caller: Caller,
  game_id: string,
  { before_version_id, limit = LIST_MAX }: QueryOf<typeof listGameVersions>,
): Promise<ResponseOf<typeof listGameVersions>> {
  await requireGame(ctx, caller, game_id)
  const found = await ctx.db
    .selectFrom('versions')
    .select(['version_id', 'create_ts', 'display_name'])
    .select(
      sql<string[]>`array(
        select namespace_id from namespaces where namespaces.version_id = versions.version_id order by namespace_id
      )`.as('namespace_ids'),
    )
    .where('game_id', '=', game_id)
    .$if(before_version_id !== undefined, (query) => query.where(isAfter('versions', 'version_id', before_version_id!)))
    .orderBy('create_ts', 'desc')
    .orderBy('version_id', 'desc')
    .limit(limit + 1)
    .execute()
  const { rows, is_cut } = cut(found, limit)
  return { versions: rows.map((row) => ({ ...row, create_ts: timestamp(row.create_ts) })), is_cut }
}

/** Throws GAME_NOT_FOUND or VERSION_NOT_FOUND; a version of another game is not found here. */
export async function findVersion(
  ctx: Context,
  caller: Caller,
  game_id: string,
  version_id: string,
): Promise<Static<typeof VersionFull>> {
  await requireGame(ctx, caller, game_id)
  const row = await ctx.db
    .selectFrom('versions')
    .select(['version_id', 'create_ts', 'display_name', 'config'])
    .where('game_id', '=', game_id)
    .where('version_id', '=', version_id)
    .executeTakeFirstOrThrow(() => new ApiError('VERSION_NOT_FOUND'))
  return { ...row, create_ts: timestamp(row.create_ts), config: row.config as VersionConfig }
}

/** Throws VERSION_NOT_FOUND. */
export async function requireVersion(ctx: Context, game_id: string, version_id: string): Promise<void> {
  await ctx.db
    .selectFrom('versions')
    .select('version_id')
    .where('game_id', '=', game_id)
    .where('version_id', '=', version_id)
    .executeTakeFirstOrThrow(() => new ApiError('VERSION_NOT_FOUND'))
}
