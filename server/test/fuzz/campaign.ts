// Shared by all fuzzings: the number of cases, the seed, and the report of a case that breaks a law.
import assert from 'node:assert/strict'
import fc from 'fast-check'

/** The same seed generates the same cases. */
export type Campaign = { count: number; seed: number }

/** Smaller forms of a case that are tried. A case that hangs takes half a minute in each. */
const SHRINKS_MAX = 300

export type Law<T> = {
  cases: fc.Arbitrary<T>
  /** Throws an Error that says which law the case breaks. */
  examine: (item: T) => Promise<void>
  /** The case as a test that can be pasted. */
  toTest: (item: T) => string
  /** Called when the first case has failed, so that concurrent lanes stop. */
  stop: AbortController
}

/** Each lane examines its part of the cases, at the same time as the others. Throws the first fault once all have ended. */
export async function inLanes(
  lanes: number,
  { count, seed }: Campaign,
  run: (lane: number, campaign: Campaign, stop: AbortController) => Promise<void>,
): Promise<void> {
  const stop = new AbortController()
  const runs = Array.from({ length: lanes }, (_, lane) =>
    run(lane, { count: Math.ceil(count / lanes), seed: seed + lane }, stop),
  )
  const fault = (await Promise.allSettled(runs)).find(({ status }) => status === 'rejected')
  if (fault?.status === 'rejected') throw fault.reason
}

/** Examines `count` cases. Throws with the smallest failing one as a test. */
export async function examineAll<T>(
  { cases, examine, toTest, stop }: Law<T>,
  { count, seed }: Campaign,
): Promise<void> {
  let attempts_left: number | null = null
  const property = fc.asyncProperty(cases, async (item) => {
    if (attempts_left === null ? stop.signal.aborted : attempts_left-- <= 0) return
    try {
      await examine(item)
    } catch (error) {
      attempts_left ??= SHRINKS_MAX
      stop.abort()
      throw error
    }
  })
  const { failed, counterexample, errorInstance } = await fc.check(property, { seed, numRuns: count, unbiased: true })
  if (!failed) return
  const [item] = counterexample!
  const reason = errorInstance instanceof Error ? errorInstance.message : String(errorInstance)
  assert.fail(`${reason}\n\nSeed ${seed}. As a test:\n\n${toTest(item)}\n`)
}

/** A text of bytes as the code of a string. */
export function literal(value: unknown): string {
  return JSON.stringify(value).replace(/[\x7f-\xff]/g, (byte) => `\\u00${byte.charCodeAt(0).toString(16)}`)
}
