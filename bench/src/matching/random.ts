// What the benches of matches draw, the same in every run.

/** As in chess: 400 more win ten times of eleven. */
const SKILL = { mean: 1_200, deviation: 300 }

/** A linear congruential generator, so that every run has the same players. Returns numbers from 0 to below 1. */
export function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** A normal distribution, by Box and Muller. */
export function skillOf(random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return SKILL.mean + SKILL.deviation * normal
}

export function percentile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * part) - 1] ?? 0
}
