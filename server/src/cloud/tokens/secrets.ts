// Secrets of a game: environment variables of its lobbies. Values are sealed before they are stored, and only the start of a
// lobby opens them (tokens/lobby-credentials.ts). They are in no response, no audit event and no log of the platform.
import {
  ApiError,
  isPlatformVariable,
  type listGameSecrets as listGameSecretsOperation,
  type ResponseOf,
  SECRET_BYTES_MAX,
  SECRETS_BYTES_MAX,
  SECRETS_MAX,
} from '@musterhost/contract'
import type { Transaction } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import { SECRET } from '../../audit/members.ts'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { GAME_SECRETS } from '../../tokens/sealed-columns.ts'
import { requireGame, requireNamespace } from '../access.ts'
import { creatorColumns, creatorOf } from '../creators.ts'
import { throwErrors } from '../field-errors.ts'
import { lockGroupOf } from '../quotas.ts'
import { timestamp } from '../times.ts'

/** `namespace_id`: undefined: the secret holds in all namespaces of the game. */
type SecretName = { game_id: string; name: string; namespace_id: string | undefined }

/** Throws GAME_NOT_FOUND. */
export async function listSecrets(
  ctx: Context,
  caller: Caller,
  game_id: string,
): Promise<ResponseOf<typeof listGameSecretsOperation>> {
  await requireGame(ctx, caller, game_id)
  const rows = await ctx.db
    .selectFrom('game_secrets')
    .leftJoin('users', 'users.user_id', 'game_secrets.creator_user_id')
    .select(['name', 'namespace_id', 'update_ts', 'creator_kind'])
    .select(({ fn }) => fn.coalesce('creator_name', 'users.display_name').as('creator_name'))
    .where('game_id', '=', game_id)
    .orderBy('name')
    .orderBy('namespace_id', (order) => order.asc().nullsFirst())
    .execute()
  const secrets = rows.map(({ name, namespace_id, update_ts, ...row }) => {
    const set_by = creatorOf(row)
    return {
      name,
      ...(namespace_id === null ? {} : { namespace_id }),
      update_ts: timestamp(update_ts),
      ...(set_by === undefined ? {} : { set_by }),
    }
  })
  return { secrets }
}

/** Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND or VALIDATION_ERROR. */
export async function setSecret(
  ctx: ChangeContext,
  caller: Caller,
  { game_id, name, namespace_id }: SecretName,
  value: string,
): Promise<void> {
  await requireGame(ctx, caller, game_id)
  if (namespace_id !== undefined) await requireNamespace(ctx, game_id, namespace_id)
  const byte_count = Buffer.byteLength(value)
  checkSecret(name, byte_count)
  await changes(ctx, { game_id, ...(namespace_id === undefined ? {} : { namespace_id }) }, async (trx) => {
    await lockGroupOf(trx, game_id)
    if (namespace_id !== undefined) await requireNamespace(ctx, game_id, namespace_id, trx)
    const stored = await storedSecrets(trx, game_id, namespace_id)
    const others = stored.filter((secret) => secret.name !== name)
    checkRoom(others, byte_count)
    const now_ms = ctx.now()
    const former = stored.find((secret) => secret.name === name)
    const secret_id = former?.secret_id ?? newId(now_ms)
    const sealed = ctx.seals.seal(GAME_SECRETS.purposeOf(secret_id), value, now_ms)
    const row = { value: sealed, byte_count, update_ts: new Date(now_ms), ...creatorColumns(caller) }
    await trx
      .insertInto('game_secrets')
      .values({ secret_id, game_id, namespace_id: namespace_id ?? null, name, ...row })
      .onConflict((conflict) => conflict.column('secret_id').doUpdateSet(row))
      .execute()
    return { before: former === undefined ? {} : { [name]: SECRET }, after: { [name]: SECRET } }
  })
}

/** Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND or SECRET_NOT_FOUND. */
export async function removeSecret(
  ctx: ChangeContext,
  caller: Caller,
  { game_id, name, namespace_id }: SecretName,
): Promise<void> {
  await requireGame(ctx, caller, game_id)
  if (namespace_id !== undefined) await requireNamespace(ctx, game_id, namespace_id)
  await changes(ctx, { game_id, ...(namespace_id === undefined ? {} : { namespace_id }) }, async (trx) => {
    const { numDeletedRows } = await trx
      .deleteFrom('game_secrets')
      .where('game_id', '=', game_id)
      .where('namespace_id', 'is not distinct from', namespace_id ?? null)
      .where('name', '=', name)
      .executeTakeFirst()
    if (numDeletedRows === 0n) throw new ApiError('SECRET_NOT_FOUND')
    return { before: { [name]: SECRET }, after: {} }
  })
}

function checkSecret(name: string, byte_count: number): void {
  if (isPlatformVariable(name)) {
    const message = `The platform sets ${name} in every lobby. Choose another name, for example GAME_${name}.`
    throwErrors([{ path: ['name'], reason: 'reserved', message }])
  }
  if (byte_count > SECRET_BYTES_MAX) {
    const message = `The value has ${byte_count} bytes, and a secret at most ${SECRET_BYTES_MAX}. Keep large files in the build, and only their key here.`
    throwErrors([{ path: ['value'], reason: 'too_long', message }])
  }
}

type StoredSecret = { secret_id: string; name: string; byte_count: number }

function storedSecrets(
  trx: Transaction<Schema>,
  game_id: string,
  namespace_id: string | undefined,
): Promise<StoredSecret[]> {
  return trx
    .selectFrom('game_secrets')
    .select(['secret_id', 'name', 'byte_count'])
    .where('game_id', '=', game_id)
    .where('namespace_id', 'is not distinct from', namespace_id ?? null)
    .execute()
}

function checkRoom(others: readonly StoredSecret[], byte_count: number): void {
  if (others.length >= SECRETS_MAX) {
    const message = `There are ${SECRETS_MAX} secrets, which is the maximum of a game and of a namespace. Remove one: muster secrets remove NAME`
    throwErrors([{ path: ['name'], reason: 'too_many', message }])
  }
  const bytes = others.reduce((sum, secret) => sum + secret.byte_count, byte_count)
  if (bytes > SECRETS_BYTES_MAX) {
    const message = `The secrets would have ${bytes} bytes in all, and may have ${SECRETS_BYTES_MAX} of a game and of a namespace. Remove one: muster secrets remove NAME`
    throwErrors([{ path: ['value'], reason: 'too_long', message }])
  }
}
