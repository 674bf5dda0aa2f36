// The cluster of deploy/postgres/: its primary dies under load, and Patroni promotes a synchronous standby. ROUNDS=10 plays more.
// Runs while no other file does: a player of a busy platform gets a seat within 30 s of the fault.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PATRONI_NEEDS, PatroniCluster } from '../database/patroni.ts'
import { lacking } from '../run/optional-programs.ts'
import { lateRounds, runFailoverRounds } from './failover.ts'
import { operationTable, roundLine, timeTable } from './report.ts'

const ROUNDS = Number(process.env.ROUNDS ?? 1)
const SEED = 50

const missing = lacking(...PATRONI_NEEDS)

test('no acknowledged operation is lost when Patroni replaces the primary, and seats are given again within 30 s', {
  skip: missing ?? false,
}, async (t) => {
  const cluster = await PatroniCluster.start()
  t.after(() => cluster.stop())
  assert.deepEqual(cluster.mistakes, [])
  const options = { rounds: ROUNDS, seed: SEED, database: cluster }
  const { findings, history, rounds } = await runFailoverRounds(options, (number, round) =>
    t.diagnostic(roundLine(number, ROUNDS, round)),
  )
  for (const line of [...timeTable(rounds), '', ...operationTable(history)]) t.diagnostic(line)
  assert.deepEqual([...findings, ...lateRounds(rounds)], [])
  assert.equal(rounds.length, ROUNDS)
  assert.ok(history.counts.acknowledged > 0)
})
