// The laws of matching by rules, in random lives of a queue (test/matchmaker/matching).
import { test } from 'node:test'
import fc from 'fast-check'
import { live, queueLife } from '../../../../test/matchmaker/matching/model.ts'

/** A hundred thousand passed when this was written. */
const LIVES = 20_000

test(`parties stay whole, rules hold for all of a match, and nothing is lost or doubled, in ${LIVES} random lives`, () => {
  fc.assert(fc.property(queueLife, live), { numRuns: LIVES })
})
