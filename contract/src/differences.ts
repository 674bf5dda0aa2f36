// The difference of two JSON documents, as lines that people read: one for each member that was added, removed or changed.

type Change = { path: string; kind: 'added' | 'removed' | 'changed'; before?: unknown; after?: unknown }

/** Changes that are printed; the rest is counted. */
const CHANGES_SHOWN_MAX = 100
/** Characters of a value that are printed. */
const VALUE_LENGTH_MAX = 80

/** Sorted by path. A list is compared as a whole, except lists of equal length, whose items are compared by position. */
export function changesBetween(before: unknown, after: unknown, path = ''): Change[] {
  if (isEqual(before, after)) return []
  if (isRecord(before) && isRecord(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
    return names.flatMap((name) => changesBetween(before[name], after[name], path === '' ? name : `${path}.${name}`))
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.flatMap((item, index) => changesBetween(item, after[index], `${path}[${index}]`))
  }
  if (before === undefined) return [{ path, kind: 'added', after }]
  if (after === undefined) return [{ path, kind: 'removed', before }]
  return [{ path, kind: 'changed', before, after }]
}

export function changeLines(changes: readonly Change[]): string[] {
  const lines = changes.slice(0, CHANGES_SHOWN_MAX).map(({ path, kind, before, after }) => {
    if (kind === 'added') return `+ ${path}: ${valueText(after)}`
    if (kind === 'removed') return `- ${path}: ${valueText(before)}`
    return `~ ${path}: ${valueText(before)} -> ${valueText(after)}`
  })
  const left_out = changes.length - lines.length
  return left_out > 0 ? [...lines, `and ${left_out} more`] : lines
}

function valueText(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > VALUE_LENGTH_MAX ? `${text.slice(0, VALUE_LENGTH_MAX)}…` : text
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The order of members does not matter. */
function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => isEqual(item, b[index]))
  }
  if (!isRecord(a) || !isRecord(b)) return false
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => name in b && isEqual(a[name], b[name]))
}
