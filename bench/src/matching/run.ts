// Duels of 1,000 players of known skill who come one after the other: the difference of skill and the wait, at three widenings of the
// rule `near`, beside a fixed window. The window looks every 15 s, pairs players within the first limit, and after two
// windows without a match pairs a player with anyone. The same arrivals for all; simulated time, so that the machine does not
// matter. Then ratings.ts plays duels by ratings.
import type { RuleConfig } from '@musterhost/contract'
import { playMatches } from '@musterhost/contract/matching'
import { percentile, randomOf, skillOf } from './random.ts'
import { playRatings } from './ratings.ts'

const PLAYERS = 1_000
const BETWEEN_ARRIVALS_MS = 1_500
const WINDOW_MS = 15_000
const WINDOWS_WITH_LIMIT = 2
const FIRST_LIMIT = 100
const SEED = 29

type Arrival = { at_ms: number; skill: number }
type Result = { name: string; gaps: number[]; waits_ms: number[]; left: number }

export async function run(): Promise<void> {
  const arrivals = arrivalsOf(randomOf(SEED))
  const widening = (name: string, within: number, by: number, to: number): Result => {
    return playRules(name, { near: 'skill', within, widen: { every_s: 5, by, to } }, arrivals)
  }
  const results = [
    widening('narrow: 50, then 25 more every 5 s, up to 300', 50, 25, 300),
    widening(`middle: ${FIRST_LIMIT}, then 50 more every 5 s, up to 600`, FIRST_LIMIT, 50, 600),
    widening('wide: 200, then 200 more every 5 s, up to 2,000', 200, 200, 2_000),
    playWindows(arrivals),
  ]
  console.log(`${PLAYERS} players, one every ${BETWEEN_ARRIVALS_MS / 1_000} s on average, duels`)
  for (const { name, gaps, waits_ms, left } of results) {
    const [half, most] = [percentile(waits_ms, 0.5), percentile(waits_ms, 0.95)]
    const gap = Math.round(gaps.reduce((sum, one) => sum + one, 0) / gaps.length)
    const waits = `wait ${seconds(half)} for half, ${seconds(most)} for 95 %`
    console.log(`${name}: mean difference ${gap}, at most ${Math.round(Math.max(...gaps))}; ${waits}; ${left} left`)
  }
  await playRatings(PLAYERS, SEED)
}

function playRules(name: string, rule: RuleConfig, arrivals: readonly Arrival[]): Result {
  const players = arrivals.map(({ at_ms, skill }) => ({ at_s: at_ms / 1_000, attributes: { skill } }))
  const { matches, waiting_count } = playMatches({ size: { min: 2, max: 2 }, rules: [rule] }, players)
  return {
    name,
    gaps: matches.map(({ differences }) => differences.skill!),
    waits_ms: matches.flatMap(({ waits_s }) => waits_s.map((wait_s) => wait_s * 1_000)),
    left: waiting_count,
  }
}

function playWindows(arrivals: readonly Arrival[]): Result {
  const name = `window of ${WINDOW_MS / 1_000} s: ${FIRST_LIMIT}, and anyone after ${WINDOWS_WITH_LIMIT} windows`
  const result: Result = { name, gaps: [], waits_ms: [], left: 0 }
  let waiting: Arrival[] = []
  const coming = [...arrivals]
  for (let now_ms = WINDOW_MS; coming.length > 0 || waiting.length > 1; now_ms += WINDOW_MS) {
    while (coming[0] !== undefined && coming[0].at_ms < now_ms) waiting.push(coming.shift()!)
    const left: Arrival[] = []
    while (waiting.length > 0) {
      const seed = waiting.shift()!
      const nearest = waiting.toSorted((a, b) => away(seed, a) - away(seed, b))[0]
      const is_open = now_ms - seed.at_ms >= WINDOWS_WITH_LIMIT * WINDOW_MS
      if (nearest === undefined || (away(seed, nearest) > FIRST_LIMIT && !is_open)) left.push(seed)
      else {
        waiting = waiting.filter((other) => other !== nearest)
        add(result, [seed, nearest], now_ms)
      }
    }
    waiting = left
  }
  return { ...result, left: waiting.length }
}

function add({ gaps, waits_ms }: Result, [one, other]: readonly Arrival[], now_ms: number): void {
  gaps.push(away(one!, other!))
  waits_ms.push(now_ms - one!.at_ms, now_ms - other!.at_ms)
}

function away(a: Arrival, b: Arrival): number {
  return Math.abs(a.skill - b.skill)
}

function arrivalsOf(random: () => number): Arrival[] {
  let now_ms = 0
  return Array.from({ length: PLAYERS }, () => {
    now_ms += Math.round(-Math.log(1 - random()) * BETWEEN_ARRIVALS_MS)
    return { at_ms: now_ms, skill: skillOf(random) }
  })
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
