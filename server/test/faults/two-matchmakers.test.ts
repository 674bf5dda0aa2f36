// Two matchmakers on one database: each is suspended while it writes, and continues when the other has taken over.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { roundLine } from './report.ts'
import { runTwoMatchmakers } from './two-matchmakers.ts'

const ROUNDS = 2
const SEED = 30

test('two matchmakers never give a seat twice, whichever of them is suspended and continues', async (t) => {
  const { findings, rounds } = await runTwoMatchmakers({ rounds: ROUNDS, seed: SEED }, (number, round) =>
    t.diagnostic(roundLine(number, ROUNDS, round)),
  )
  assert.deepEqual(findings, [])
  for (const { counts } of rounds) assert.ok(counts.unknown > 0, 'no request was under way at the stopped one')
})
