// The book against a plain one (test/matchmaker/plain-book), driven by random steps (test/matchmaker/book-model).
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { BookPair } from '../../../test/matchmaker/book-model/pair.ts'
import { steps } from '../../../test/matchmaker/book-model/steps.ts'

const RUNS = 10_000

test(`the book does what a plain one does, in ${RUNS} random lives`, (t: TestContext) => {
  let steps_made = 0
  fc.assert(
    fc.property(steps, (life) => {
      const pair = new BookPair()
      for (const one of life) pair.step(one)
      pair.rebuild()
      steps_made += life.length
    }),
    { numRuns: RUNS },
  )
  t.diagnostic(`${RUNS} lives of ${Math.round(steps_made / RUNS)} steps on average`)
})
