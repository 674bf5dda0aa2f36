// Which backups stay: the latest ones, or by a rule the newest of each of the last days, weeks and months that have any.

const DAY_MS = 24 * 60 * 60_000
/** Periods of a rule. */
const PERIODS_MAX = 9_999

export type KeepRule = { daily: number; weekly: number; monthly: number }

const UNITS = { d: 'daily', w: 'weekly', m: 'monthly' } as const

/** `7d 4w 12m`, in any order, each part at most once. Null: the text is no rule, or keeps nothing. */
export function parseKeepRule(text: string): KeepRule | null {
  const rule: KeepRule = { daily: 0, weekly: 0, monthly: 0 }
  const parts = text.match(/\d{1,4}[dwm]/g) ?? []
  if (parts.length === 0 || parts.join('') !== text.replace(/\s/g, '')) return null
  for (const part of parts) {
    const name = UNITS[part.at(-1) as keyof typeof UNITS]
    if (rule[name] !== 0) return null
    rule[name] = Math.min(Number(part.slice(0, -1)), PERIODS_MAX)
  }
  return rule.daily + rule.weekly + rule.monthly === 0 ? null : rule
}

export function keepRuleText({ daily, weekly, monthly }: KeepRule): string {
  const parts = [daily > 0 && `${daily}d`, weekly > 0 && `${weekly}w`, monthly > 0 && `${monthly}m`]
  return parts.filter((part) => part !== false).join(' ')
}

/** `names`: times of finished backups as repository.ts writes them. The latest always stays. A number: that many stay. */
export function keptBackups(names: readonly string[], rule: KeepRule | number): Set<string> {
  const newest_first = [...names].sort().reverse()
  if (typeof rule === 'number') return new Set(newest_first.slice(0, rule))
  const kept = new Set(newest_first.slice(0, 1))
  for (const [count, periodOf] of [
    [rule.daily, (name: string) => name.slice(0, 10)],
    [rule.weekly, weekOf],
    [rule.monthly, (name: string) => name.slice(0, 7)],
  ] as const) {
    const periods = new Set<string>()
    for (const name of newest_first) {
      const period = periodOf(name)
      if (periods.has(period)) continue
      if (periods.size === count) break
      periods.add(period)
      kept.add(name)
    }
  }
  return kept
}

/** The number of the week since a Monday. */
function weekOf(name: string): string {
  const days = Math.floor(Date.parse(name.slice(0, 10)) / DAY_MS)
  // The first day of the epoch was a Thursday.
  return String(Math.floor((days + 3) / 7))
}
