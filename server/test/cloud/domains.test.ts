import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { sql } from 'kysely'
import {
  ACTIVE_CHECK_MS,
  ACTIVE_WITHOUT_PROOF_MS_MAX,
  CHECK_BACK_OFF_MS,
  checkDomain,
  PENDING_FAILURES_MAX,
} from '../../src/cloud/domains/check.ts'
import { startJobs } from '../../src/cloud/jobs.ts'
import type { Zone } from '../outbound/name-server.ts'
import { until } from '../support/until.ts'
import { ask, createDomainSteps, HERE, start } from './domain-steps.ts'
import { newGame, refused, UNKNOWN_ID } from './steps.ts'

test('custom domains', async (t) => {
  const { platform, names } = await start(t)
  const { ctx } = platform
  const own = await newGame(platform)
  const other = await newGame(platform)
  const { row, list, tell, add, remove, addAndWait, check, prove } = createDomainSteps(platform, names)

  await t.test('a claim lists the exact records that prove it, and its state', async () => {
    await addAndWait(own, 'listed.example.com')
    const told = await tell(own, 'listed.example.com')
    const { txt_value, cname_label } = await row(own, 'listed.example.com')
    assert.match(cname_label, /^claim-[0-9a-f]{30}$/)
    assert.match(txt_value, /^[\w-]{32}$/)
    assert.equal(told.verification_status, 'pending')
    assert.deepEqual(told.verification_records, [
      { type: 'CNAME', name: 'listed.example.com', value: `${cname_label}.cdn.localhost` },
      { type: 'TXT', name: '_muster.listed.example.com', value: txt_value },
    ])
    assert.deepEqual(told.verification_method, { http: { cname_record: `${cname_label}.cdn.localhost` } })
    assert.equal(told.verification_errors.length, 2)
    await addAndWait(own, 'apex.com')
    const apex = await tell(own, 'apex.com')
    assert.deepEqual(
      apex.verification_records.map(({ type, name }) => [type, name]),
      [['TXT', '_muster.apex.com']],
    )
    assert.deepEqual(apex.verification_errors.length, 1)
    for (const { domain } of await list(own)) await remove(own, domain)
  })

  await t.test('a domain that is proven becomes active, is served, and stands as Origin', async () => {
    names.zones.set('play.example.com', HERE)
    await addAndWait(own, 'Play.Example.com')
    await prove(own, 'play.example.com', 'TXT')
    const told = await tell(own, 'play.example.com')
    assert.deepEqual([told.verification_status, told.verification_errors], ['active', []])
    await until(
      'it is served',
      async () => (await ask(platform, 'play.example.com', '/.well-known/muster.json')).status === 200,
    )
    const { body } = await ask(platform, 'PLAY.example.com.:80', '/.well-known/muster.json')
    assert.equal((JSON.parse(body) as { namespace_id: string }).namespace_id, own.prod_id)
  })

  await t.test('who stands as Origin, by host and by enable_domain_public_auth', async () => {
    const { name_id } = await ctx.db
      .selectFrom('games')
      .select('name_id')
      .where('game_id', '=', own.game_id)
      .executeTakeFirstOrThrow()
    const hosts = ['play.example.com', `${name_id}.cdn.localhost`, `${name_id}--prod.cdn.localhost`]
    const listAs = (origin: string) =>
      fetch(`${platform.matchmaker_url}/matchmaker/lobbies/list`, { headers: { origin } })
    for (const enabled of [true, false]) {
      await ctx.db
        .updateTable('namespaces')
        .set({ enable_domain_public_auth: enabled })
        .where('namespace_id', '=', own.prod_id)
        .execute()
      await ctx.listener.notify('namespaces', own.prod_id)
      for (const host of hosts) {
        for (const scheme of ['http', 'https']) {
          const origin = `${scheme}://${host}`
          await until(`${origin} is ${enabled ? 'let in' : 'refused'}`, async () => {
            const answer = await listAs(origin)
            await answer.body?.cancel()
            assert.equal(answer.headers.get('access-control-allow-origin'), '*')
            return answer.status === (enabled ? 200 : 401)
          })
        }
        // The site itself is governed by auth_type, not by this flag.
        assert.equal((await ask(platform, host, '/.well-known/muster.json')).status, 200)
      }
      for (const host of ['evil.example.com', 'play.example.com.evil.org', 'example.com']) {
        assert.equal((await listAs(`http://${host}`)).status, 401)
      }
    }
    await ctx.db
      .updateTable('namespaces')
      .set({ enable_domain_public_auth: true })
      .where('namespace_id', '=', own.prod_id)
      .execute()
  })

  await t.test(
    'a CNAME record to the name of the claim is a proof; one to the name of another claim is none',
    async () => {
      await addAndWait(own, 'named.example.com')
      const [line = ''] = (await tell(own, 'named.example.com')).verification_errors
      assert.match(line, /NXDOMAIN/)
      const { cname_label } = await row(own, 'named.example.com')
      await addAndWait(other, 'named.example.com')
      names.zones.set('named.example.com', { CNAME: `${cname_label}.cdn.localhost`, ...HERE })
      await check(other, 'named.example.com')
      assert.match((await tell(other, 'named.example.com')).verification_errors[0]!, /of another claim/)
      await check(own, 'named.example.com')
      assert.equal((await tell(own, 'named.example.com')).verification_status, 'active')
    },
  )

  await t.test('of two claims that are proven at once one wins, and the domain is taken from then on', async () => {
    await addAndWait(own, 'shared.example.com')
    await addAndWait(other, 'shared.example.com')
    const values = [
      (await row(own, 'shared.example.com')).txt_value,
      (await row(other, 'shared.example.com')).txt_value,
    ]
    names.zones.set('_muster.shared.example.com', { TXT: values })
    await Promise.all([check(own, 'shared.example.com'), check(other, 'shared.example.com')])
    const both = [await tell(own, 'shared.example.com'), await tell(other, 'shared.example.com')]
    assert.deepEqual(both.map((item) => item.verification_status).sort(), ['active', 'failed'])
    const [winner, loser] = both[0]!.verification_status === 'active' ? [own, other] : [other, own]
    assert.match((await tell(loser, 'shared.example.com')).verification_errors[0]!, /Another namespace/)
    const third = await newGame(platform)
    await refused('CLOUD_HOSTNAME_TAKEN', add(third, 'shared.example.com'))
    await refused('CLOUD_HOSTNAME_TAKEN', add(winner, 'SHARED.example.com.'))
  })

  await t.test('what is wrong is listed in readable lines, and checked again later and later', async (t) => {
    let connections = 0
    const server = createServer((socket) => {
      connections++
      socket.destroy()
    }).listen(Number(new URL(platform.edge_url).port), '127.0.0.2')
    await once(server, 'listening')
    t.after(() => void server.close())
    type Trouble = { zone?: Zone; txt?: Zone; lines: [RegExp, RegExp] }
    const none = /know no such record/
    const troubles: Record<string, Trouble> = {
      loop: { zone: { CNAME: 'loop.wrong.example.com' }, lines: [/is loop\.wrong\.example\.com, which is not/, none] },
      deep: { zone: { CNAME: 'link0.example.com' }, lines: [/is link0\.example\.com, which is not/, none] },
      servfail: {
        zone: 'SERVFAIL',
        txt: 'SERVFAIL',
        lines: [/could not answer .*SERVFAIL/, /could not answer .*SERVFAIL/],
      },
      none: {
        zone: 'NXDOMAIN',
        lines: [/needs a CNAME record to claim-.*NXDOMAIN/, /^_muster\.none\..* needs a TXT record\. .*NXDOMAIN/],
      },
      empty: { zone: {}, txt: {}, lines: [/NODATA/, /NODATA/] },
      address: {
        zone: { A: ['127.0.0.2', '203.0.113.7'], AAAA: ['2001:db8::7'] },
        lines: [
          /^address\.wrong\.example\.com needs a CNAME record to claim-\w+\.cdn\.localhost, and has A 127\.0\.0\.2, A 203\.0\.113\.7, AAAA 2001:db8::7\. .* flattens .* TXT/,
          none,
        ],
      },
      much: {
        zone: { A: Array.from({ length: 9 }, (_, index) => `203.0.113.${index}`) },
        lines: [/and has A 203\.0\.113\.0, A 203\.0\.113\.1, A 203\.0\.113\.2 and 6 more\./, none],
      },
      wrong: {
        txt: { TXT: ['v=spf1 -all', ['of ', 'others']] },
        lines: [none, /No TXT record of _muster\.wrong\..* has .*: it has "v=spf1 -all", "of others"\.$/],
      },
      alias: { txt: { CNAME: 'txt.elsewhere.example' }, lines: [none, /is a CNAME record to txt\.elsewhere\.example/] },
      many: {
        txt: { TXT: Array.from({ length: 65 }, (_, index) => `value ${index}`) },
        lines: [none, /more than 64 TXT records/],
      },
    }
    const game = await newGame(platform)
    for (const [label, { zone, txt, lines }] of Object.entries(troubles)) {
      const domain = `${label}.wrong.example.com`
      if (zone !== undefined) names.zones.set(domain, zone)
      if (txt !== undefined) names.zones.set(`_muster.${domain}`, txt)
      await addAndWait(game, domain)
      const told = await tell(game, domain)
      assert.equal(told.verification_status, 'pending', domain)
      assert.equal(told.verification_errors.length, 2)
      for (const [index, line] of told.verification_errors.entries()) {
        assert.match(line, lines[index]!, domain)
        assert.doesNotMatch(line, /[\r\n]/)
      }
    }
    assert.equal(connections, 0, 'nothing is fetched from where a domain leads')

    const { domain_id } = await row(game, 'none.wrong.example.com')
    const pauseOf = async () => {
      const { rows } = await sql<{ run_at: Date }>`
        select run_at from graphile_worker.jobs where key = ${`domain:${domain_id}`}`.execute(ctx.db)
      return rows[0]!.run_at.getTime() - ctx.now()
    }
    for (let failures = 2; failures <= PENDING_FAILURES_MAX; failures++) {
      await checkDomain(ctx, domain_id)
      const wanted_ms = CHECK_BACK_OFF_MS[Math.min(failures, CHECK_BACK_OFF_MS.length) - 1]!
      const pause_ms = await pauseOf()
      assert.ok(pause_ms <= wanted_ms && pause_ms > wanted_ms - 9_000, `${failures}: ${pause_ms}`)
    }
    assert.equal((await tell(game, 'none.wrong.example.com')).verification_status, 'failed')
  })

  await t.test(
    'a record with the right value at a wrong name is found, and its line says where it belongs',
    async () => {
      const game = await newGame(platform)
      const lineOf = async (domain: string, name: string, zone: Zone, index: number): Promise<string> => {
        names.zones.set(name, zone)
        await check(game, domain)
        const told = await tell(game, domain)
        assert.equal(told.verification_status, 'pending')
        return told.verification_errors[index]!
      }
      for (const domain of ['bare.hint.com', 'doubled.hint.com', 'dotless.hint.com']) await addAndWait(game, domain)
      const bare = { TXT: [(await row(game, 'bare.hint.com')).txt_value] }
      assert.match(
        await lineOf('bare.hint.com', 'bare.hint.com', bare, 1),
        /The value is at bare\.hint\.com; move it to _muster\.bare\.hint\.com\.$/,
      )
      const doubled = { TXT: [(await row(game, 'doubled.hint.com')).txt_value] }
      assert.match(
        await lineOf('doubled.hint.com', '_muster.doubled.hint.com.hint.com', doubled, 1),
        /appends hint\.com, so enter the name without it\.$/,
      )
      const { cname_label } = await row(game, 'dotless.hint.com')
      const dotless = { CNAME: `${cname_label}.cdn.localhost.hint.com` }
      assert.match(await lineOf('dotless.hint.com', 'dotless.hint.com', dotless, 0), /End the target with a dot\.$/)
    },
  )

  await t.test('a record that was not asked for, beside an answer, is no proof', async (t) => {
    const game = await newGame(platform)
    await addAndWait(game, 'poison.example.com')
    const { txt_value, cname_label } = await row(game, 'poison.example.com')
    const ttl = 60
    names.additionals.push(
      { type: 'TXT', name: '_muster.poison.example.com', ttl, data: txt_value },
      { type: 'CNAME', name: 'poison.example.com', ttl, data: `${cname_label}.cdn.localhost` },
    )
    t.after(() => names.additionals.splice(0))
    await check(game, 'poison.example.com')
    assert.equal((await tell(game, 'poison.example.com')).verification_status, 'pending')
  })

  await t.test('what fails for a while un-verifies nothing before 72 hours', async () => {
    await addAndWait(own, 'steady.example.com')
    await prove(own, 'steady.example.com', 'CNAME')
    const proven = names.zones.get('steady.example.com')!
    const status = async () => (await tell(own, 'steady.example.com')).verification_status
    assert.equal(await status(), 'active')
    names.zones.set('steady.example.com', 'SERVFAIL')
    platform.advance(ACTIVE_WITHOUT_PROOF_MS_MAX - ACTIVE_CHECK_MS)
    await check(own, 'steady.example.com')
    assert.equal(await status(), 'active')
    assert.match((await tell(own, 'steady.example.com')).verification_errors[0]!, /SERVFAIL/)
    platform.advance(ACTIVE_CHECK_MS + 1_000)
    await check(own, 'steady.example.com')
    assert.equal(await status(), 'failed')
    await until(
      'it is not served any more',
      async () => (await ask(platform, 'steady.example.com', '/')).status === 404,
    )
    names.zones.set('steady.example.com', proven)
    await check(own, 'steady.example.com')
    assert.equal(await status(), 'active')
  })

  await t.test('a namespace has at most ten domains, however many are added at once', async () => {
    const game = await newGame(platform)
    const answers = await Promise.allSettled(
      Array.from({ length: 25 }, (_, index) => add(game, `n${index}.many.example.com`)),
    )
    assert.equal(answers.filter((answer) => answer.status === 'fulfilled').length, 10)
    assert.equal((await list(game)).length, 10)
    const refusal = await refused('CDN_TOO_MANY_DOMAINS', add(game, 'more.many.example.com'))
    assert.deepEqual([refusal.status, refusal.metadata], [400, { limit: 10, used: 10 }])
    await remove(game, (await list(game))[0]!.domain)
    await add(game, 'more.many.example.com')
  })

  await t.test('names that a site cannot have, and those that are not there, are refused', async () => {
    const game = await newGame(platform)
    for (const domain of [
      '127.0.0.1',
      'com',
      'x.localhost',
      'x.cdn.localhost',
      'http://example.com',
      'a_b.example.com',
    ]) {
      assert.equal((await refused('CDN_INVALID_DOMAIN', add(game, domain))).status, 400)
    }
    await add(game, 'bücher.example.com')
    assert.equal((await list(game))[0]!.domain, 'xn--bcher-kva.example.com')
    await refused('CDN_DOMAIN_NOT_FOUND', remove(game, 'none.example.com'))
    await refused('CDN_DOMAIN_NOT_FOUND', remove(other, 'xn--bcher-kva.example.com'))
    await refused('VALIDATION_ERROR', remove(game, 'BÜCHER.example.com'))
    await refused('NAMESPACE_NOT_FOUND', add({ ...game, prod_id: UNKNOWN_ID }, 'a.example.com'))
    await refused('NAMESPACE_NOT_FOUND', add({ ...game, prod_id: other.prod_id }, 'a.example.com'))
    await refused('GAME_NOT_FOUND', add({ ...game, game_id: UNKNOWN_ID }, 'a.example.com'))
    await remove(game, 'xn--bcher-kva.example.com')
    assert.deepEqual(await list(game), [])
  })

  await t.test('a job whose worker was killed is done by the next one', async () => {
    const game = await newGame(platform)
    await addAndWait(game, 'killed.example.com')
    const { domain_id, failure_count } = await row(game, 'killed.example.com')
    await sql`
      update graphile_worker._private_jobs set locked_by = 'killed', locked_at = now(), run_at = now()
      where key = ${`domain:${domain_id}`}`.execute(ctx.db)
    const jobs = await startJobs(ctx, {
      check_domain: checkDomain,
      order_certificates: async () => {},
      back_up: async () => {},
    })
    try {
      await until('it was checked again', async () => {
        return (await row(game, 'killed.example.com')).failure_count > failure_count
      })
    } finally {
      await jobs.stop()
    }
  })
})
