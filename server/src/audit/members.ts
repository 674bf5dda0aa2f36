// What changed, as the audit log shows it: one entry for each member whose value is another than before. Secrets are shown as
// changed and without a value, and long values are cut.
import { isDeepStrictEqual } from 'node:util'
import type { AuditChange } from '@musterhost/contract'

/** Stands for a secret value. */
export const SECRET = Symbol('secret')

/** Members by name; undefined and null both mean that there is no value. */
export type Members = Readonly<Record<string, unknown>>

/** Characters of one value in the audit log. The rest is cut. */
const VALUE_LENGTH_MAX = 512
/** Members of one audit event. The rest is cut, and the last entry says how many. */
const MEMBERS_MAX = 32

/** A second guard beside SECRET, for members that an operation passes on as it received them. */
const SECRET_NAMES = /password|secret|credential|private|verification_headers|(?:^|_)(?:token|code|key|hash)$/

export function changedMembers(before: Members, after: Members): AuditChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changes = names.flatMap((member) => changeOf(member, before[member] ?? null, after[member] ?? null))
  if (changes.length <= MEMBERS_MAX) return changes
  const rest = changes.length - MEMBERS_MAX + 1
  return [...changes.slice(0, MEMBERS_MAX - 1), { member: `${rest} more members`, is_cut: true }]
}

function changeOf(member: string, before: unknown, after: unknown): AuditChange[] {
  if (before === SECRET || after === SECRET || SECRET_NAMES.test(member)) {
    return before === null && after === null ? [] : [{ member, is_secret: true }]
  }
  if (isDeepStrictEqual(before, after)) return []
  const [from, to] = [textOf(before), textOf(after)]
  const is_cut = from.is_cut || to.is_cut
  return [
    {
      member,
      ...(before === null ? {} : { before: from.text }),
      ...(after === null ? {} : { after: to.text }),
      ...(is_cut ? { is_cut } : {}),
    },
  ]
}

function textOf(value: unknown): { text: string; is_cut: boolean } {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // PostgreSQL refuses NUL and half a surrogate pair, which a cut can leave.
  const kept = text.slice(0, VALUE_LENGTH_MAX).toWellFormed().replaceAll('\0', '\ufffd')
  return { text: kept, is_cut: text.length > VALUE_LENGTH_MAX }
}
