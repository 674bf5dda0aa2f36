// Every column of the database that contains seals, with the purpose of its seals. Code that seals or opens takes the
// purpose from here. The sweep after a rotation and `muster verify` go through the list.

export type SealedColumn = {
  table: 'versions' | 'certificates' | 'acme_accounts' | 'game_secrets' | 'notice_targets' | 'sign_in_providers'
  /** The primary key of the table, from which the purpose is derived. */
  id: string
  column: string
  purposeOf: (id: string) => string
}

export const VERSION_SECRETS: SealedColumn = {
  table: 'versions',
  id: 'version_id',
  column: 'secrets',
  purposeOf: (version_id) => `version ${version_id}`,
}

export const CERTIFICATE_KEYS: SealedColumn = {
  table: 'certificates',
  id: 'host',
  column: 'private_key',
  purposeOf: (host) => `certificate ${host}`,
}

export const ACME_ACCOUNT_KEYS: SealedColumn = {
  table: 'acme_accounts',
  id: 'directory_url',
  column: 'private_key',
  purposeOf: (directory_url) => `acme account ${directory_url}`,
}

export const GAME_SECRETS: SealedColumn = {
  table: 'game_secrets',
  id: 'secret_id',
  column: 'value',
  purposeOf: (secret_id) => `game secret ${secret_id}`,
}

export const NOTICE_SECRETS: SealedColumn = {
  table: 'notice_targets',
  id: 'target_id',
  column: 'secrets',
  purposeOf: (target_id) => `notice target ${target_id}`,
}

export const SIGN_IN_SECRETS: SealedColumn = {
  table: 'sign_in_providers',
  id: 'provider_id',
  column: 'client_secret',
  purposeOf: (provider_id) => `sign-in provider ${provider_id}`,
}

export const SEALED_COLUMNS: readonly SealedColumn[] = [
  VERSION_SECRETS,
  CERTIFICATE_KEYS,
  ACME_ACCOUNT_KEYS,
  GAME_SECRETS,
  NOTICE_SECRETS,
  SIGN_IN_SECRETS,
]
