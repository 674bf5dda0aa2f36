// How a bench says what it found.

export function verdict(what: string, value: number, goal: number, kind: 'at least' | 'at most'): void {
  const is_met = kind === 'at least' ? value >= goal : value <= goal
  const told = value < 0.1 ? value.toPrecision(2) : value.toFixed(2)
  console.log(`  ${what}: ${told} (goal ${kind} ${goal}: ${is_met ? 'met' : 'MISSED'})`)
}
