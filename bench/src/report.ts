// Prints the results of a bench.

/** Throws where nothing was measured: a ratio to zero would meet every goal. */
export function verdict(what: string, value: number, goal: number, kind: 'at least' | 'at most'): void {
  if (!Number.isFinite(value)) throw new Error(`${what}: no figure was measured (${value})`)
  const is_met = kind === 'at least' ? value >= goal : value <= goal
  const text = value < 0.1 ? value.toPrecision(2) : value.toFixed(2)
  console.log(`  ${what}: ${text} (goal ${kind} ${goal}: ${is_met ? 'met' : 'MISSED'})`)
}
