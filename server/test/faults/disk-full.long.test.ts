// A full disk under load: real bytes, a real file system, and the whole platform on it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mountSmallDisk } from '../support/small-disk.ts'
import { DISK_BYTES, runDiskFull } from './disk-full.ts'
import { roundLine } from './report.ts'

const ROUNDS = 2
const SEED = 20

test('no acknowledged operation is lost on a full disk, and the platform recovers once there is room', async (t) => {
  const disk = await mountSmallDisk(t, DISK_BYTES)
  if (disk === null) return
  t.after(() => disk.unmount())
  const { findings, rounds } = await runDiskFull(disk, { rounds: ROUNDS, seed: SEED }, (number, round) =>
    t.diagnostic(roundLine(number, ROUNDS, round)),
  )
  assert.deepEqual(findings, [])
  // A round continues only when a write has failed.
  assert.equal(rounds.length, ROUNDS)
})
