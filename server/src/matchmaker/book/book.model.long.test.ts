// The book against a plain one (test/matchmaker/plain-book), driven by random steps (test/matchmaker/book-model).
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { BookPair } from '../../../test/matchmaker/book-model/pair.ts'
import { KINDS, type Step, type StepKind, steps } from '../../../test/matchmaker/book-model/steps.ts'

const RUNS = 10_000
const kind = (name: StepKind): number => KINDS.indexOf(name)
/** Steps with two empty lobbies of a draining version: the one with the longer grace was empty first. */
const LONGER_GRACE: Step[] = [
  [kind('find'), 288_897_312, 446_188_294, 0],
  [kind('closed'), 0, 0, 0],
  [kind('prepare'), 481_723_648, 380_857_900, 0],
  [kind('disconnected'), 0, 0, 3],
  [kind('drain'), 0, 0, 0],
  [kind('edge_report'), 0, 0, 0],
]

test(`the book does what a plain one does, in ${RUNS} random lives`, (t: TestContext) => {
  let steps_made = 0
  fc.assert(
    fc.property(steps, (life) => {
      const pair = new BookPair()
      for (const one of life) pair.step(one)
      pair.rebuild()
      steps_made += life.length
    }),
    { numRuns: RUNS, examples: [[LONGER_GRACE]] },
  )
  t.diagnostic(`${RUNS} lives of ${Math.round(steps_made / RUNS)} steps on average`)
})
