// How a bench says what it found.

export function verdict(what: string, value: number, goal: number, kind: 'at least' | 'at most'): void {
  const is_met = kind === 'at least' ? value >= goal : value <= goal
  console.log(`  ${what}: ${value.toFixed(2)} (goal ${kind} ${goal}: ${is_met ? 'met' : 'MISSED'})`)
}
