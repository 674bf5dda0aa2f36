// Order and repetition: many notices to a target that fails half of the time, with two processes that send.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimTargets, type Delivery, deliverTarget } from '../../src/cloud/notices/deliver.ts'
import { createSend } from '../../src/cloud/notices/send.ts'
import { startSender } from '../../src/cloud/notices/work.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { firstTaken, HALF_FAILS, plantTarget, startTaker, waitingOf } from './planted.ts'

/** kill.long.test.ts sends 10,000. */
const NOTICES = 2_000
const LEASE_MS = 60_000

function deliveryOf({ ctx }: Platform, owner: string, signal: AbortSignal): Delivery {
  return { ctx, owner, signal, send: createSend(ctx), times: { lease_ms: LEASE_MS, backoff: 0 } }
}

test('notices in their order', async (t) => {
  const platform = await startPlatform(t, {
    roles: 'matchmaker',
    env: { MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8' },
  })
  const taker = await startTaker(t)
  const { requests, url } = taker

  await t.test(
    'of 2,000 notices to a target that fails half of the time each is delivered, none out of order, and the id shows what comes twice',
    async () => {
      requests.length = 0
      taker.how = (index) => HALF_FAILS[index % HALF_FAILS.length]!
      const target_id = await plantTarget(platform, url, NOTICES)
      const closing = new AbortController()
      const senders = ['one', 'two'].map((owner) => startSender(deliveryOf(platform, owner, closing.signal)))
      for (const sender of senders) sender.wake()
      await until('all notices', async () => (await waitingOf(platform, target_id)) === 0)
      closing.abort()
      for (const sender of senders) await sender.close()

      const taken = requests.filter(({ is_taken }) => is_taken)
      assert.deepEqual(
        firstTaken(requests).map(({ n }) => n),
        Array.from({ length: NOTICES }, (_, index) => index + 1),
      )
      for (let index = 1; index < requests.length; index++) {
        const step = requests[index]!.n - requests[index - 1]!.n
        assert.ok(step === 0 || step === 1, `${requests[index - 1]!.n} and then ${requests[index]!.n}`)
      }
      t.diagnostic(`${requests.length} requests, ${taken.length - NOTICES} notices twice`)
      assert.ok(requests.length > NOTICES * 1.4)
    },
  )

  await t.test(
    'a target has one owner; another takes it after the lease, and what was not recorded comes again',
    async () => {
      requests.length = 0
      taker.how = () => 'ok'
      const target_id = await plantTarget(platform, url, 3)
      const { signal } = new AbortController()
      const dead = deliveryOf(platform, 'dead', signal)
      const [claimed] = await claimTargets(dead, 10)
      assert.equal(claimed!.target_id, target_id)
      // It sends one and dies before it records that.
      const { db, pool } = platform.ctx
      const first = await db
        .selectFrom('notices')
        .selectAll()
        .where('target_id', '=', target_id)
        .orderBy('number')
        .execute()
      await dead.send(claimed!, first[0]!.notice as never)
      const heir = deliveryOf(platform, 'heir', signal)
      assert.deepEqual(await claimTargets(heir, 10), [])
      await pool.query(`update notice_targets set owner_until = now() - interval '1 second' where owner = 'dead'`)
      const [taken] = await claimTargets(heir, 10)
      await deliverTarget(heir, taken!)
      assert.deepEqual(
        requests.map(({ n }) => n),
        [1, 1, 2, 3],
      )
      assert.equal(requests[0]!.notice_id, requests[1]!.notice_id)
      // The dead one comes back to life: it has lost the target, and stops after what it had begun.
      await db
        .updateTable('notices')
        .set({ state: 'waiting', end_ts: null })
        .where('target_id', '=', target_id)
        .execute()
      const again = await claimTargets(heir, 10)
      assert.equal(again.length, 1)
      await deliverTarget(dead, claimed!)
      assert.equal(await waitingOf(platform, target_id), 3)
      await deliverTarget(heir, again[0]!)
      assert.equal(await waitingOf(platform, target_id), 0)
    },
  )

  await t.test('a pause is waited for in the table, and the target is not claimed before', async () => {
    requests.length = 0
    const target_id = await plantTarget(platform, url, 1)
    const closing = new AbortController()
    const delivery = { ...deliveryOf(platform, 'one', closing.signal), times: { lease_ms: LEASE_MS, backoff: 1_000 } }
    taker.how = () => 'refuse'
    const [claimed] = await claimTargets(delivery, 10)
    await deliverTarget(delivery, claimed!)
    assert.deepEqual(await claimTargets(delivery, 10), [])
    assert.equal(requests.length, 1)
    assert.equal(await waitingOf(platform, target_id), 1)
    closing.abort()
  })
})
