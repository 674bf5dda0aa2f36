// What the claims of a provider say about a person: names, an address, memberships of groups, and whether the person is an
// administrator. Pure: the claims were checked before.
import type { GroupRole } from '@musterhost/contract'
import { FORMATS } from '@musterhost/contract/formats'
import type { SignInSettings } from '../../database/schema.ts'

/** The payload of an ID token, or of a response about the user. */
export type PersonClaims = Readonly<Record<string, unknown>>
type Role = Exclude<GroupRole, 'owner'>

/** Values of the claim that are read; a person is rarely in more groups. */
const VALUES_MAX = 2_000
/** Objects that a path enters. */
const DEPTH_MAX = 8
const EMAIL_LENGTH_MAX = 254
/** Characters of a display name, as in the contract. */
const NAME_LENGTH_MAX = 24
const NAMELESS = 'Person'
const isEmail = FORMATS.email!
const isDisplayName = FORMATS['display-name']!
const NAME_CLAIMS = ['name', 'preferred_username', 'nickname', 'given_name'] as const

/** The value at a path: a member with exactly this name first, and then a dot enters an object. */
export function claimAt(claims: PersonClaims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  let value: unknown = claims
  for (const name of path.split('.').slice(0, DEPTH_MAX)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as PersonClaims)[name]
  }
  return value
}

/** The texts of a claim that is a text or a list. */
export function valuesOf(claims: PersonClaims, path: string): ReadonlySet<string> {
  const value = claimAt(claims, path)
  const list: unknown[] = Array.isArray(value) ? value.slice(0, VALUES_MAX) : [value]
  return new Set(list.filter((one) => typeof one === 'string'))
}

/** `memberships`: the role in each group. `has_value`: whether the person has any value that the settings name. */
export type Rights = { memberships: ReadonlyMap<string, Role>; is_admin: boolean; has_value: boolean }

export function rightsOf(
  claims: PersonClaims,
  { groups_claim, rules, admin_values }: Pick<SignInSettings, 'groups_claim' | 'rules' | 'admin_values'>,
): Rights {
  const values = groups_claim === null ? new Set<string>() : valuesOf(claims, groups_claim)
  const memberships = new Map<string, Role>()
  for (const { value, group_id, role } of rules) {
    if (values.has(value) && memberships.get(group_id) !== 'developer') memberships.set(group_id, role)
  }
  const is_admin = admin_values.some((value) => values.has(value))
  return { memberships, is_admin, has_value: is_admin || memberships.size > 0 }
}

/** Null: the provider reports none, or one that is no address. In lower case, as addresses of users are. */
export function emailOf(claims: PersonClaims): string | null {
  const { email } = claims
  if (typeof email !== 'string' || email.length > EMAIL_LENGTH_MAX || !isEmail(email)) return null
  return email.toLowerCase()
}

/** Some providers send the boolean as a text. */
export function isEmailVerified({ email_verified }: PersonClaims): boolean {
  return email_verified === true || email_verified === 'true'
}

export function displayNameOf(claims: PersonClaims): string {
  const given = NAME_CLAIMS.map((name) => claims[name])
  const texts = [...given, emailOf(claims)?.split('@', 1)[0]].filter((text) => typeof text === 'string')
  const names = texts.map((text) =>
    text
      .slice(0, NAME_LENGTH_MAX * 4)
      .trim()
      .replace(/\s+/g, ' '),
  )
  // A cut can leave half a surrogate pair.
  const cut = names.map((name) =>
    name
      .slice(0, NAME_LENGTH_MAX)
      .replace(/[\ud800-\udbff]$/, '')
      .trim(),
  )
  return cut.find((name) => name !== '' && isDisplayName(name)) ?? NAMELESS
}

/** Whether the ID token lacks a claim that is wanted, which the provider may report to a request instead. */
export function isIncomplete(claims: PersonClaims, groups_claim: string | null): boolean {
  const lacks_name = NAME_CLAIMS.every((name) => typeof claims[name] !== 'string')
  return (
    lacks_name || claims.email === undefined || (groups_claim !== null && claimAt(claims, groups_claim) === undefined)
  )
}
