// Order and repetition: many notices to a target that fails half of the time, with two processes that send.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { sql } from 'kysely'
import { claimTargets, type Delivery, deliverTarget } from '../../src/cloud/notices/deliver.ts'
import { createSend } from '../../src/cloud/notices/send.ts'
import { newSigningKey } from '../../src/cloud/notices/signature.ts'
import { startSender } from '../../src/cloud/notices/work.ts'
import { newId } from '../../src/ids.ts'
import { NOTICE_SECRETS } from '../../src/tokens/sealed-columns.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

/** 10,000 took 56 s on two busy cores, so this test sends fewer. */
const NOTICES = 2_000
const LEASE_MS = 60_000

/** A target at a URL, with so many notices that wait, the first numbered 1. */
async function plantTarget({ ctx }: Platform, url: string, count: number): Promise<string> {
  const target_id = newId(ctx.now())
  const secrets = JSON.stringify({ url, signing_key: newSigningKey() })
  await ctx.db
    .insertInto('notice_targets')
    .values({
      ...{ target_id, group_id: null, game_id: null, name: target_id.slice(-12), kind: 'webhook', hint: null },
      ...{ secrets: ctx.seals.seal(NOTICE_SECRETS.purposeOf(target_id), secrets, ctx.now()) },
      settings: JSON.stringify({ events: ['deploy_live'], by_admin: true }),
    })
    .execute()
  await sql`
    insert into notices (notice_id, target_id, source, event, notice, create_ts)
    select id, ${target_id}, n::text, 'deploy_live', jsonb_build_object('notice_id', id, 'n', n), now()
    from (select gen_random_uuid() as id, n from generate_series(1, ${count}::integer) as n order by n) as planted`.execute(
    ctx.db,
  )
  return target_id
}

function deliveryOf({ ctx }: Platform, owner: string, signal: AbortSignal): Delivery {
  return { ctx, owner, signal, send: createSend(ctx), times: { lease_ms: LEASE_MS, backoff: 0 } }
}

async function waitingOf({ ctx }: Platform, target_id: string): Promise<number> {
  const rows = await ctx.db
    .selectFrom('notices')
    .where('target_id', '=', target_id)
    .where('state', '=', 'waiting')
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(rows.count)
}

type Taken = { n: number; notice_id: string; is_taken: boolean }

test('notices in their order', async (t) => {
  const platform = await startPlatform(t, {
    roles: 'matchmaker',
    env: { MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8' },
  })
  const requests: Taken[] = []
  let failing: (index: number) => 'ok' | 'refuse' | 'hang up' | 'take and fail' = () => 'ok'
  const server = createServer((req, res) => {
    let body = ''
    req.on('data', (part: Buffer) => {
      body += part
    })
    req.on('end', () => {
      const how = failing(requests.length)
      const { n, notice_id } = JSON.parse(body) as Taken
      requests.push({ n, notice_id, is_taken: how === 'ok' || how === 'take and fail' })
      if (how === 'hang up') return void req.socket.destroy()
      res.writeHead(how === 'ok' ? 200 : 503)
      res.end(how)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`

  await t.test(
    'of 2,000 notices to a target that fails half of the time each is delivered, none out of order, and the id shows what comes twice',
    async () => {
      requests.length = 0
      const hows = ['ok', 'refuse', 'ok', 'hang up', 'ok', 'take and fail'] as const
      failing = (index) => hows[index % hows.length]!
      const target_id = await plantTarget(platform, url, NOTICES)
      const closing = new AbortController()
      const senders = ['one', 'two'].map((owner) => startSender(deliveryOf(platform, owner, closing.signal)))
      for (const sender of senders) sender.wake()
      await until('all notices', async () => (await waitingOf(platform, target_id)) === 0)
      closing.abort()
      for (const sender of senders) await sender.close()

      const taken = requests.filter(({ is_taken }) => is_taken)
      const firsts = [...new Map(taken.toReversed().map((one) => [one.notice_id, one])).values()].toReversed()
      assert.deepEqual(
        firsts.map(({ n }) => n).toSorted((one, other) => one - other),
        firsts.map(({ n }) => n),
      )
      assert.equal(new Set(firsts.map(({ n }) => n)).size, NOTICES)
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
      failing = () => 'ok'
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
    failing = () => 'refuse'
    const [claimed] = await claimTargets(delivery, 10)
    await deliverTarget(delivery, claimed!)
    assert.deepEqual(await claimTargets(delivery, 10), [])
    assert.equal(requests.length, 1)
    assert.equal(await waitingOf(platform, target_id), 1)
    closing.abort()
  })
})
