// 10,000 notices to a target that fails half of the time, sent by a process that is killed again and again.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { firstTaken, HALF_FAILS, plantTarget, startTaker, waitingOf } from './planted.ts'

const NOTICES = 10_000
const KILLS = 6
const LEASE_MS = 1_000
/** Notices whose result is recorded at once: those that a killed process repeats, at most. */
const UNRECORDED_MAX = 50
const PRIVATE = { MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8' }

test('of 10,000 notices each is delivered, none out of order, whichever process was killed while it sent', async (t) => {
  const platform = await startPlatform(t, { roles: 'matchmaker', env: PRIVATE })
  const { data_dir, database_url } = platform.ctx.config
  const settings = JSON.stringify({
    ...PRIVATE,
    MUSTER_DATA: data_dir,
    DATABASE_URL: database_url,
    MUSTER_ROLES: 'api',
  })
  const taker = await startTaker(t)
  taker.how = (index) => HALF_FAILS[index % HALF_FAILS.length]!
  const target_id = await plantTarget(platform, taker.url, NOTICES)
  let child: ChildProcess | null = null
  t.after(() => child?.kill('SIGKILL'))
  const start = (): ChildProcess =>
    fork(new URL('sender-program.ts', import.meta.url), [settings, String(LEASE_MS)], { execArgv: [] })

  for (let kill = 1; kill <= KILLS; kill++) {
    const sender = start()
    child = sender
    const wanted = (NOTICES / (KILLS + 1)) * kill
    await until(`${wanted} notices`, () => firstTaken(taker.requests).length >= wanted)
    const exited = once(sender, 'exit')
    sender.kill('SIGKILL')
    await exited
  }
  child = start()
  await until('all notices', async () => (await waitingOf(platform, target_id)) === 0)

  const firsts = firstTaken(taker.requests).map(({ n }) => n)
  assert.deepEqual(
    firsts,
    Array.from({ length: NOTICES }, (_, index) => index + 1),
  )
  const taken = taker.requests.filter(({ is_taken }) => is_taken)
  // Each sixth request is taken although it fails, so its notice comes once more.
  const failed =
    taken.length - taker.requests.filter((_, index) => HALF_FAILS[index % HALF_FAILS.length] === 'ok').length
  const repeated = taken.length - NOTICES - failed
  t.diagnostic(`${taker.requests.length} requests, ${repeated} notices twice because of ${KILLS} kills`)
  assert.ok(repeated <= KILLS * UNRECORDED_MAX, `${repeated} notices came twice`)
})
