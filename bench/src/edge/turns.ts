// Routes take turns, so that a slow moment of the machine is not that of one of them.
import { median } from '../load.ts'

const ROUNDS = 5

type Ways = Readonly<Record<string, () => Promise<number>>>

/** Runs one round to warm up, then ROUNDS of each route in turn. Every other round has the reverse order. */
export async function byTurns(ways: Ways): Promise<Record<string, number[]>> {
  const results: Record<string, number[]> = Object.fromEntries(Object.keys(ways).map((name) => [name, []]))
  for (let round = 0; round <= ROUNDS; round++) {
    const order = round % 2 === 0 ? Object.entries(ways) : Object.entries(ways).toReversed()
    for (const [name, measure] of order) {
      const value = await measure()
      if (round > 0) results[name]!.push(value)
    }
  }
  return results
}

export function report(what: string, results: Readonly<Record<string, readonly number[]>>): void {
  const figures = Object.entries(results).map(([name, values]) => {
    const value = median(values)
    return `${name} ${value < 10 ? value.toFixed(3) : Math.round(value)}`
  })
  console.log(`\n  ${what} (median of ${ROUNDS} rounds): ${figures.join(', ')}`)
}

export function ratio(results: Readonly<Record<string, readonly number[]>>, who: string, against: string): number {
  return median(results[who]!.map((value, round) => value / results[against]![round]!))
}
