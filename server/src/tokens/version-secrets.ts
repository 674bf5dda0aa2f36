// The secrets of a version config (captcha secrets, headers of verification): in the `config` of its row each of them is an empty text, which is
// also what the API answers; the texts themselves lie beside it in `secrets`, sealed for this version. Only who calls a
// captcha provider or a game's own endpoint takes them in again.
import { SEAT_ACTIONS, type VersionConfig } from '@muster/contract'
import { VERSION_SECRETS } from './sealed-columns.ts'
import type { Seals } from './seals.ts'

/** By where each stands in the config: its path, joined with dots. */
type Secrets = Record<string, string>

/** One place of a config that holds a secret. */
type Place = { path: readonly string[]; read: () => string; write: (text: string) => void }

const { purposeOf } = VERSION_SECRETS

/** What may be shown of a config, and the rest of it, sealed; null when it has no secrets. */
export function closeConfig(
  seals: Seals,
  version_id: string,
  config: VersionConfig,
  now_ms: number,
): { config: VersionConfig; secrets: string | null } {
  const shown = structuredClone(config)
  const secrets: Secrets = {}
  for (const { path, read, write } of secretPlaces(shown)) {
    secrets[path.join('.')] = read()
    write('')
  }
  if (Object.keys(secrets).length === 0) return { config: shown, secrets: null }
  return { config: shown, secrets: seals.seal(purposeOf(version_id), JSON.stringify(secrets), now_ms) }
}

/** The config as it was sent. Throws an Error when its secrets cannot be opened. */
export function openConfig(
  seals: Seals,
  row: { version_id: string; config: unknown; secrets: string | null },
): VersionConfig {
  const config = row.config as VersionConfig
  if (row.secrets === null) return config
  const secrets = JSON.parse(seals.open(purposeOf(row.version_id), row.secrets)) as Secrets
  const opened = structuredClone(config)
  for (const { path, write } of secretPlaces(opened)) {
    const text = secrets[path.join('.')]
    if (text !== undefined) write(text)
  }
  return opened
}

/** Where a config has secrets, in no particular order. */
export function secretPlaces(config: VersionConfig): Place[] {
  const places: Place[] = []
  const captcha = config.matchmaker?.captcha
  for (const provider of ['hcaptcha', 'turnstile'] as const) {
    const keys = captcha?.[provider]
    if (keys !== undefined) places.push(placeIn(keys, 'secret_key', ['matchmaker', 'captcha', provider, 'secret_key']))
  }
  for (const [mode, { actions }] of Object.entries(config.matchmaker?.game_modes ?? {})) {
    for (const action of SEAT_ACTIONS) {
      for (const member of ['verification_config', 'verification'] as const) {
        const headers = actions?.[action]?.[member]?.headers ?? {}
        const at = ['matchmaker', 'game_modes', mode, 'actions', action, member, 'headers']
        for (const name of Object.keys(headers)) places.push(placeIn(headers, name, [...at, name]))
      }
    }
  }
  return places
}

function placeIn<K extends string>(holder: Partial<Record<K, string>>, name: K, path: readonly string[]): Place {
  return {
    path,
    read: () => holder[name] ?? '',
    write(text) {
      holder[name] = text
    },
  }
}
