// Six rounds of kill -9 under load, as `npm run faults` plays them: once as the user of the tests and, where that is root,
// also as an ordinary user.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { findOrdinaryUser } from '../database/harness.ts'
import { runKillRounds } from './kill-rounds.ts'
import { roundLine } from './report.ts'

const ROUNDS = 6
const ORDINARY_ROUNDS = 2
const SEED = 10

test('no acknowledged operation is lost when parts of the platform are killed', async (t) => {
  const { findings, history, rounds } = await runKillRounds({ rounds: ROUNDS, seed: SEED }, (number, round) =>
    t.diagnostic(roundLine(number, ROUNDS, round)),
  )
  assert.deepEqual(findings, [])
  assert.equal(rounds.length, ROUNDS)
  assert.ok(history.counts.acknowledged > 0 && history.counts.unknown > 0, 'the faults hit no operation')
})

const ordinary = findOrdinaryUser()

test('no acknowledged operation is lost when the platform runs as an ordinary user', {
  skip: 'reason' in ordinary && ordinary.reason,
}, async (t) => {
  assert.ok('user' in ordinary)
  const args = [join(import.meta.dirname, 'main.ts'), '--rounds', String(ORDINARY_ROUNDS), '--seed', String(SEED)]
  const child = spawn(process.execPath, args, {
    ...ordinary.user,
    cwd: '/',
    env: { PATH: process.env.PATH, HOME: '/' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
  }
  const [code] = await once(child, 'close')
  t.diagnostic(output)
  assert.equal(code, 0, output)
})
