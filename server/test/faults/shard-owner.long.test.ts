// The matchmaker that has a shard is harmed under load, in each of four ways, as `npm run faults -- --fault owner` does it.
// ROUNDS=200 plays more. Each first find must succeed within the 5 s of law L11, beside what a find took before the fault: that is
// the share of other tests on the machine.
// Runs while no other file does: a find succeeds within 5 s of the fault.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inOwnNetwork } from '../support/own-network.ts'
import { roundLine, slowRounds } from './report.ts'
import { allowDropping, OWNER_FAULTS, runShardOwner } from './shard-owner.ts'

const ROUNDS = Number(process.env.ROUNDS ?? OWNER_FAULTS.length)
const SEED = 98
/** Longer than a process must be silent to lose its shards. */
const STOP_MS = 8_000

inOwnNetwork(import.meta.filename, () => {
  test('finds go on, and no acknowledged seat is lost or doubled, whatever happens to the owner of a shard', async (t) => {
    allowDropping()
    const { findings, history, rounds } = await runShardOwner(
      { rounds: ROUNDS, seed: SEED, faults: OWNER_FAULTS, stop_ms: STOP_MS },
      (number, round) => t.diagnostic(roundLine(number, ROUNDS, round)),
    )
    assert.deepEqual([...findings, ...slowRounds(rounds)], [])
    assert.equal(rounds.length, ROUNDS)
    assert.ok(history.counts.acknowledged > 0)
  })
})
