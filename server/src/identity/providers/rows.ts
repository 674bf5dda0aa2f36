// The rows of providers as code reads them. The secret stays sealed until a request needs it.
import { ApiError } from '@musterhost/contract'
import type { Selectable } from 'kysely'
import { mainUrl } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import type { Context, Database } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { SIGN_IN_SECRETS } from '../../tokens/sealed-columns.ts'

export type Provider = Selectable<Schema['sign_in_providers']>

/** Throws SIGN_IN_PROVIDER_NOT_FOUND. */
export function requireProvider(db: Database, name: string): Promise<Provider> {
  return db
    .selectFrom('sign_in_providers')
    .selectAll()
    .where('name', '=', name)
    .executeTakeFirstOrThrow(() => new ApiError('SIGN_IN_PROVIDER_NOT_FOUND'))
}

/** Null: the provider has no secret, because the client is public. */
export function secretOf(
  { seals }: Pick<Context, 'seals'>,
  { provider_id, client_secret }: Pick<Provider, 'provider_id' | 'client_secret'>,
): string | null {
  return client_secret === null ? null : seals.open(SIGN_IN_SECRETS.purposeOf(provider_id), client_secret)
}

/** Where the provider sends the browser back to: a page of the hub. */
export function redirectUrl(config: Config, name: string): string {
  return `${mainUrl(config)}/sign-in/${name}`
}

/** Where the provider sends the browser after it has ended its own session. */
export function signOutUrl(config: Config): string {
  return `${mainUrl(config)}/sign-in`
}

export const BACKCHANNEL_PATH = '/auth/backchannel-logout'

export function backchannelLogoutUrl(config: Config, name: string): string {
  return `${mainUrl(config)}${BACKCHANNEL_PATH}/${name}`
}
