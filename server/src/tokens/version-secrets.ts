// The secrets of a version config (captcha secrets, headers of verification). In the column `config`, and in responses of
// the API, each secret is an empty text. The column `secrets` has the texts, sealed for this version. Only the code that
// calls a captcha provider or a game's own endpoint opens them.
import { SEAT_ACTIONS, type VersionConfig } from '@musterhost/contract'
import { VERSION_SECRETS } from './sealed-columns.ts'
import type { Seals } from './seals.ts'

/** By the path of each secret in the config, joined with dots. */
type Secrets = Record<string, string>

/** One member of a config that is a secret. */
type SecretMember = { path: readonly string[]; read: () => string; write: (text: string) => void }

const { purposeOf } = VERSION_SECRETS

/** Splits a config into its public part and its sealed secrets (null: it has none). */
export function closeConfig(
  seals: Seals,
  version_id: string,
  config: VersionConfig,
  now_ms: number,
): { config: VersionConfig; secrets: string | null } {
  const shown = structuredClone(config)
  const secrets: Secrets = {}
  for (const { path, read, write } of secretMembers(shown)) {
    secrets[path.join('.')] = read()
    write('')
  }
  if (Object.keys(secrets).length === 0) return { config: shown, secrets: null }
  return { config: shown, secrets: seals.seal(purposeOf(version_id), JSON.stringify(secrets), now_ms) }
}

/** The config with its secrets, as it was sent. Throws an Error when they cannot be opened. */
export function openConfig(
  seals: Seals,
  row: { version_id: string; config: unknown; secrets: string | null },
): VersionConfig {
  const config = row.config as VersionConfig
  if (row.secrets === null) return config
  const secrets = JSON.parse(seals.open(purposeOf(row.version_id), row.secrets)) as Secrets
  const opened = structuredClone(config)
  for (const { path, write } of secretMembers(opened)) {
    const text = secrets[path.join('.')]
    if (text !== undefined) write(text)
  }
  return opened
}

/** The members of a config that are secrets, in no particular order. */
export function secretMembers(config: VersionConfig): SecretMember[] {
  const members: SecretMember[] = []
  const captcha = config.matchmaker?.captcha
  for (const provider of ['hcaptcha', 'turnstile'] as const) {
    const keys = captcha?.[provider]
    if (keys !== undefined)
      members.push(memberOf(keys, 'secret_key', ['matchmaker', 'captcha', provider, 'secret_key']))
  }
  for (const [mode, { actions }] of Object.entries(config.matchmaker?.game_modes ?? {})) {
    for (const action of SEAT_ACTIONS) {
      for (const member of ['verification_config', 'verification'] as const) {
        const headers = actions?.[action]?.[member]?.headers ?? {}
        const at = ['matchmaker', 'game_modes', mode, 'actions', action, member, 'headers']
        for (const name of Object.keys(headers)) members.push(memberOf(headers, name, [...at, name]))
      }
    }
  }
  return members
}

function memberOf<K extends string>(owner: Partial<Record<K, string>>, name: K, path: readonly string[]): SecretMember {
  return {
    path,
    read: () => owner[name] ?? '',
    write(text) {
      owner[name] = text
    },
  }
}
