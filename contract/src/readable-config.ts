// The config of a version as it is compared and shown: without the ids of its build and site, which change with each upload, and
// without secrets, which the platform returns as empty strings.
import type { VersionConfig } from './version-config.ts'

const IDS = new Set(['image_id', 'site_id'])

export function readableConfig(config: VersionConfig): unknown {
  const { cdn, ...sections } = readable(config, '') as Record<string, unknown>
  // The section of a site without settings.
  return isRecord(cdn) && Object.keys(cdn).length === 0 ? sections : { cdn, ...sections }
}

/** A secret may have changed although both configs look the same. */
export function hasSecrets(value: unknown, name = ''): boolean {
  if (isSecret(name, value)) return true
  if (Array.isArray(value)) return value.some((item) => hasSecrets(item))
  return isRecord(value) && Object.entries(value).some(([member, inner]) => hasSecrets(inner, member))
}

function readable(value: unknown, name: string): unknown {
  if (name === 'headers' && isRecord(value)) {
    return Object.fromEntries(Object.keys(value).map((header) => [header, '']))
  }
  if (isSecret(name, value)) return ''
  if (Array.isArray(value)) return value.map((item) => readable(item, ''))
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([member, inner]) => {
      if (IDS.has(member)) return []
      // Two names of the same member; the platform returns the first.
      const kept = member === 'verification' ? 'verification_config' : member
      return [[kept, readable(inner, member)]]
    }),
  )
}

function isSecret(name: string, value: unknown): boolean {
  return name === 'secret_key' || (name === 'headers' && isRecord(value))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
