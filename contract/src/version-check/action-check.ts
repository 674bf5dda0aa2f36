// Checks the actions of a game mode beyond their schema: which identities they require, an endpoint that may be called, and
// headers that do not describe the message itself.
import type { ErrorDetail } from '../errors.ts'
import { urlTextFault } from '../formats.ts'
import { SEAT_ACTIONS, type VerificationConfig } from '../verification-config.ts'
import type { IdentityRequirement, VersionConfig } from '../version-config.ts'
import { shownName } from '../visible-text.ts'
import type { PlatformRules } from './platform-rules.ts'

/** Characters of a header name of a verification request. */
const HEADER_NAME_LENGTH_MAX = 128
/** Bytes of all headers of one endpoint, names and values together. */
const HEADER_BYTES_MAX = 8 * 1024
/** RFC 9110: a token. */
const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/
/** Visible characters of Latin-1, with blanks between them. */
const VALUE = /^[\x21-\x7e\xa0-\xff](?:[\t\x20-\x7e\xa0-\xff]*[\x21-\x7e\xa0-\xff])?$/
/** Headers that say how the message ends and where it goes: the platform sets them. */
const FORBIDDEN = new Set([
  ...['host', 'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'expect', 'http2-settings'],
  ...['content-length', 'content-encoding', 'accept-encoding'],
])
const FORBIDDEN_PREFIX = /^proxy-/

type Actions = NonNullable<NonNullable<VersionConfig['matchmaker']>['game_modes'][string]['actions']>

type CheckUrl = PlatformRules['checkUrl']

/** `checkUrl`: null when the platform is unknown. `path` is where the actions stand in the config. */
export function checkActions(checkUrl: CheckUrl | null, actions: Actions, path: readonly string[]): ErrorDetail[] {
  return SEAT_ACTIONS.flatMap((name): ErrorDetail[] => {
    const { verification_config, verification, identity_requirement } = actions[name] ?? {}
    const at = [...path, name]
    const errors = checkRequirement(identity_requirement, at)
    if (verification_config !== undefined && verification !== undefined) {
      const message = 'verification_config and verification are two names of the same: only one may be there.'
      return [...errors, { path: [...at, 'verification'], reason: 'conflicts', message }]
    }
    const found = verification_config ?? verification
    const member = verification_config === undefined ? 'verification' : 'verification_config'
    return found === undefined ? errors : [...errors, ...checkVerification(checkUrl, found, [...at, member])]
  })
}

function checkRequirement(requirement: IdentityRequirement | undefined, path: readonly string[]): ErrorDetail[] {
  if (requirement !== 'registered') return []
  const message =
    'The platform has no registered players yet, so no player could pass. Use guest, and verification to ask your own accounts.'
  return [{ path: [...path, 'identity_requirement'], reason: 'not_supported', message }]
}

function checkVerification(
  checkUrl: CheckUrl | null,
  { url, headers = {} }: VerificationConfig,
  path: string[],
): ErrorDetail[] {
  const text_fault = urlTextFault(url)
  const fault = text_fault === null ? (checkUrl?.(url) ?? null) : { reason: 'invalid', message: text_fault }
  const errors: ErrorDetail[] = fault === null ? [] : [{ path: [...path, 'url'], ...fault }]
  const seen = new Set<string>()
  let bytes = 0
  for (const [name, value] of Object.entries(headers)) {
    const at = [...path, 'headers', shownName(name)]
    bytes += name.length + value.length
    errors.push(...checkName(name, at), ...checkValue(name, value, at))
    if (seen.has(name.toLowerCase())) {
      errors.push({
        path: at,
        reason: 'not_unique',
        message: `The header ${shownName(name.toLowerCase())} is there twice.`,
      })
    }
    seen.add(name.toLowerCase())
  }
  if (bytes > HEADER_BYTES_MAX) {
    const message = `The headers are longer than ${HEADER_BYTES_MAX} bytes together.`
    errors.push({ path: [...path, 'headers'], reason: 'too_long', message })
  }
  return errors
}

function checkName(name: string, path: string[]): ErrorDetail[] {
  const lower = name.toLowerCase()
  if (!NAME.test(name)) {
    return [{ path, reason: 'invalid', message: `${JSON.stringify(shownName(name))} is not the name of a header.` }]
  }
  if (name.length > HEADER_NAME_LENGTH_MAX) {
    const message = `The name of a header has at most ${HEADER_NAME_LENGTH_MAX} characters.`
    return [{ path, reason: 'too_long', message }]
  }
  if (!FORBIDDEN.has(lower) && !FORBIDDEN_PREFIX.test(lower) && lower !== '__proto__') return []
  return [{ path, reason: 'forbidden', message: `The header ${shownName(lower)} cannot be set.` }]
}

function checkValue(name: string, value: string, path: string[]): ErrorDetail[] {
  if (value === '') {
    const message = `The value of ${JSON.stringify(shownName(name))} is missing. It is never answered: a config that was read has none.`
    return [{ path, reason: 'required', message }]
  }
  if (VALUE.test(value)) return []
  const message = `The value of ${JSON.stringify(shownName(name))} must be one line of visible Latin-1 characters, no blank around.`
  return [{ path, reason: 'invalid', message }]
}

/** Versions are kept and answered with the name that the interface has: verification_config. */
export function withOneName(config: VersionConfig): VersionConfig {
  if (config.matchmaker === undefined) return config
  const renamed = structuredClone(config)
  for (const { actions } of Object.values(renamed.matchmaker?.game_modes ?? {})) {
    for (const name of SEAT_ACTIONS) {
      const action = actions?.[name]
      if (action?.verification === undefined) continue
      action.verification_config = action.verification
      delete action.verification
    }
  }
  return renamed
}
