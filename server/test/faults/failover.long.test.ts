// The primary of PostgreSQL dies or hangs under load, and the test promotes the standby that has most. ROUNDS=20 plays more.
// Runs while no other file does: a player of a busy platform gets a seat within 30 s of the fault.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Standbys } from '../database/standbys.ts'
import { lateRounds, runFailoverRounds } from './failover.ts'
import { roundLine } from './report.ts'

const ROUNDS = Number(process.env.ROUNDS ?? 2)
const SEED = 40

test('no acknowledged operation is lost when a synchronous standby takes over', async (t) => {
  const standbys = await Standbys.start(3)
  t.after(() => standbys.stop())
  let dead: number | null = null
  const database = {
    url: standbys.url,
    async strike() {
      dead = standbys.primary
      const is_killed = dead % 2 === 0
      // A server that hangs holds its connections open.
      if (is_killed) await standbys.kill(dead)
      else await standbys.signal(dead, 'SIGSTOP')
      const next = await standbys.promote()
      return `server ${dead} ${is_killed ? 'killed' : 'suspended'}, ${next} promoted`
    },
    async repair() {
      if (dead === null) return
      await standbys.kill(dead)
      await standbys.join(dead)
      dead = null
    },
  }
  const { findings, history, rounds } = await runFailoverRounds(
    { rounds: ROUNDS, seed: SEED, database },
    (number, round) => t.diagnostic(roundLine(number, ROUNDS, round)),
  )
  assert.deepEqual([...findings, ...lateRounds(rounds)], [])
  assert.equal(rounds.length, ROUNDS)
  assert.ok(history.counts.acknowledged > 0)
})
