// The matchmaker that has a shard is harmed under load, in each of four ways, as `npm run faults -- --fault owner` does it.
// ROUNDS=200 plays more, and each first find must succeed within the 5 s of law L11: that wants a quiet machine.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inOwnNetwork } from '../own-network.ts'
import { roundLine, slowRounds } from './report.ts'
import { allowDropping, OWNER_FAULTS, runShardOwner } from './shard-owner.ts'

const ROUNDS = Number(process.env.ROUNDS ?? OWNER_FAULTS.length)
const SEED = 98
/** Longer than a process must be silent to lose its shards. */
const STOP_MS = 8_000
/** On a machine with other tests beside this one. */
const FIND_MS_MAX = 20_000

inOwnNetwork(import.meta.filename, () => {
  test('finds go on, and no acknowledged seat is lost or doubled, whatever happens to the owner of a shard', async (t) => {
    allowDropping()
    const { findings, history, rounds } = await runShardOwner(
      { rounds: ROUNDS, seed: SEED, faults: OWNER_FAULTS, stop_ms: STOP_MS },
      (number, round) => t.diagnostic(roundLine(number, ROUNDS, round)),
    )
    assert.deepEqual([...findings, ...(process.env.ROUNDS === undefined ? [] : slowRounds(rounds))], [])
    assert.ok(rounds.every(({ find_after_ms }) => find_after_ms < FIND_MS_MAX))
    assert.equal(rounds.length, ROUNDS)
    assert.ok(history.counts.acknowledged > 0)
  })
})
