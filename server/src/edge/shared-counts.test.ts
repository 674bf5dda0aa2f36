import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { ClientShare, type ClientSlot } from '../addresses/client-share.ts'
import { identityOf } from '../node/procfs.ts'
import { SharedCounts } from './shared-counts.ts'

const MAX = 100
const STEPS = 4_000
/** A client of IPv4, which counts in one network. */
const CLIENT = '192.0.2.1'

/** Counts of this process, of its parent and of the first process of the system, which all live. */
function openThree(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'muster-counts-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const log = pino({ level: 'silent' })
  const options = { count: 3, is_successor: false, now: Date.now, log }
  const open = (pid: number): SharedCounts => SharedCounts.open(folder, { ...options, own: identityOf(pid) })!
  const all = [process.pid, process.ppid, 1].map(open)
  return { folder, all, log, options }
}

test('processes that count a client never exceed its limit together, and use nearly all of it', (t) => {
  const { all } = openThree(t)
  const shares = all.map((counts) => new ClientShare({ slots_max: 1_000, client_max: MAX }, counts.of('calls')))
  const held: ClientSlot[][] = shares.map(() => [])
  const sum = (): number => held.reduce((total, slots) => total + slots.length, 0)
  let refused = 0
  let state = 1
  const random = (below: number): number => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
  for (let step = 0; step < STEPS; step++) {
    const at = random(shares.length)
    // More requests begin than end, so that the limit is reached again and again.
    if (random(5) < 3) {
      const slot = shares[at]!.enter(CLIENT)
      if (typeof slot === 'object') held[at]!.push(slot)
      else {
        refused++
        assert.ok(sum() >= 0.9 * MAX, `refused with ${sum()} of ${MAX}`)
      }
    } else held[at]!.splice(random(held[at]!.length || 1), 1)[0]?.leave()
    assert.ok(sum() <= MAX, `${sum()} of ${MAX}`)
  }
  assert.ok(refused > 0)
  // Other clients, and the same one elsewhere, have limits of their own.
  assert.equal(typeof shares[0]!.enter('192.0.2.2'), 'object')
  for (const slots of held) for (const slot of slots.splice(0)) slot.leave()
  for (let count = 0; count < 0.9 * MAX; count++) assert.equal(typeof shares[2]!.enter(CLIENT), 'object')
})

test('the counts of a process end with it, and it is not waited for', (t) => {
  const { folder, all, options } = openThree(t)
  const fill = (counts: SharedCounts): number => {
    const share = counts.of('calls')
    let count = 0
    while (share.allows(CLIENT, count + 1, MAX)) count++
    return count
  }
  const [own, other, third] = all as [SharedCounts, SharedCounts, SharedCounts]
  assert.ok(fill(other) >= 0.9 * MAX)
  assert.ok(fill(own) < 0.1 * MAX)
  other.close()
  assert.ok(fill(own) >= 0.9 * MAX)
  third.close()
  own.close()
  assert.deepEqual(readdirSync(folder), ['seed'])
  const dead = { pid: process.pid, start_time: '1', boot_id: identityOf(process.pid)!.boot_id }
  SharedCounts.open(folder, { ...options, own: dead })
  const next = SharedCounts.open(folder, options)!
  assert.ok(fill(next) >= 0.9 * MAX)
  assert.equal(readdirSync(folder).length, 2, 'the file of the dead process is removed')
})

test('one process alone shares nothing', (t) => {
  const { folder, log } = openThree(t)
  const options = { count: 1, is_successor: false, now: Date.now, log }
  assert.equal(SharedCounts.open(folder, options), null)
})
