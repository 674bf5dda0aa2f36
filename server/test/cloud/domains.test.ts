import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { addNamespaceDomain, getGameNamespaceById, removeNamespaceDomain } from '@muster/contract'
import { sql } from 'kysely'
import {
  ACTIVE_CHECK_MS,
  ACTIVE_WITHOUT_PROOF_MS_MAX,
  CHECK_BACK_OFF_MS,
  checkDomain,
  PENDING_FAILURES_MAX,
} from '../../src/cloud/domains/check.ts'
import { startJobs } from '../../src/cloud/jobs.ts'
import { type NameServer, startNameServer } from '../net/name-server.ts'
import { type Platform, startPlatform } from '../platform.ts'
import { until } from '../until.ts'
import { newGame, refused, type TestGame, UNKNOWN_ID } from './steps.ts'

const HERE = { A: ['127.0.0.1'] }

type Answer = { status: number; body: string }

/** As a browser at the edge that asks for `host`. */
async function ask(platform: Platform, host: string, path: string): Promise<Answer> {
  const req = request(`${platform.edge_url}${path}`, { headers: { host }, agent: false }).end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  return { status: res.statusCode ?? 0, body: await text(res) }
}

function stepsOf(platform: Platform) {
  const { client, ctx } = platform
  const params = (game: TestGame) => ({ game_id: game.game_id, namespace_id: game.prod_id })
  const row = (game: TestGame, domain: string) =>
    ctx.db
      .selectFrom('domains')
      .selectAll()
      .where('namespace_id', '=', game.prod_id)
      .where('domain', '=', domain)
      .executeTakeFirstOrThrow()
  const list = async (game: TestGame) =>
    (await client.call(getGameNamespaceById, { params: params(game) })).namespace.config.cdn.domains
  const tell = async (game: TestGame, domain: string) => (await list(game)).find((item) => item.domain === domain)!
  const add = (game: TestGame, domain: string) =>
    client.call(addNamespaceDomain, { params: params(game), body: { domain } })
  const remove = (game: TestGame, domain: string) =>
    client.call(removeNamespaceDomain, { params: { ...params(game), domain } })
  /** Adds it and waits for the worker's first look. */
  const addAndWait = async (game: TestGame, domain: string) => {
    await add(game, domain)
    await until(`${domain} was looked at`, async () => {
      const { verification_status, failure_count } = await row(game, domain.toLowerCase())
      return verification_status !== 'pending' || failure_count > 0
    })
  }
  const check = async (game: TestGame, domain: string) => checkDomain(ctx, (await row(game, domain)).domain_id)
  return { row, list, tell, add, remove, addAndWait, check }
}

async function start(t: TestContext): Promise<{ platform: Platform; names: NameServer }> {
  const names = await startNameServer(t)
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,edge',
    env: { MUSTER_DNS_SERVERS: names.address, MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8' },
  })
  return { platform, names }
}

test('custom domains', async (t) => {
  const { platform, names } = await start(t)
  const { ctx } = platform
  const own = await newGame(platform)
  const other = await newGame(platform)
  const { row, list, tell, add, remove, addAndWait, check } = stepsOf(platform)

  await t.test('a domain that leads to the edge becomes active, is served, and stands as Origin', async () => {
    names.zones.set('play.example.com', HERE)
    assert.equal((await ask(platform, 'play.example.com', '/.well-known/muster.json')).status, 404)
    await addAndWait(own, 'Play.Example.com')
    const told = await tell(own, 'play.example.com')
    assert.deepEqual(told.verification_errors, [])
    assert.equal(told.verification_status, 'active')
    const method = told.verification_method as { http: { cname_record: string } }
    assert.match(method.http.cname_record, /^claim-[0-9a-f]{30}\.cdn\.localhost$/)

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
    'a CNAME record of the claim is a proof; that of another claim is none, whatever the edge answers',
    async () => {
      await addAndWait(own, 'named.example.com')
      assert.equal((await tell(own, 'named.example.com')).verification_status, 'pending')
      assert.match((await tell(own, 'named.example.com')).verification_errors[0]!, /NXDOMAIN/)
      const { cname_label } = await row(own, 'named.example.com')
      await addAndWait(other, 'named.example.com')
      names.zones.set('named.example.com', { CNAME: `${cname_label}.cdn.localhost`, A: ['127.0.0.1'] })
      await check(other, 'named.example.com')
      const [line = ''] = (await tell(other, 'named.example.com')).verification_errors
      assert.match(line, /of another claim/)
      await check(own, 'named.example.com')
      assert.equal((await tell(own, 'named.example.com')).verification_status, 'active')
    },
  )

  await t.test(
    'of two claims the first that is proven wins; afterwards the name is taken until it is given up',
    async () => {
      await addAndWait(own, 'shared.example.com')
      await addAndWait(other, 'shared.example.com')
      names.zones.set('shared.example.com', HERE)
      await Promise.all([check(own, 'shared.example.com'), check(other, 'shared.example.com')])
      const both = [await tell(own, 'shared.example.com'), await tell(other, 'shared.example.com')]
      assert.deepEqual(both.map((item) => item.verification_status).sort(), ['active', 'failed'])
      const [winner, loser] = both[0]!.verification_status === 'active' ? [own, other] : [other, own]
      assert.match((await tell(loser, 'shared.example.com')).verification_errors[0]!, /Another namespace/)
      const third = await newGame(platform)
      await refused('CLOUD_HOSTNAME_TAKEN', add(third, 'shared.example.com'))
      await refused('CLOUD_HOSTNAME_TAKEN', add(winner, 'SHARED.example.com.'))

      await remove(winner, 'shared.example.com')
      await until('it is not served any more', async () => {
        return (await ask(platform, 'shared.example.com', '/.well-known/muster.json')).status === 404
      })
      await check(loser, 'shared.example.com')
      assert.equal((await tell(loser, 'shared.example.com')).verification_status, 'active')
    },
  )

  await t.test('whatever is wrong is told in one readable line, and looked at again later and later', async (t) => {
    const server = createServer((req, res) => {
      if (req.headers.host?.startsWith('moved.')) res.writeHead(302, { location: '/elsewhere' }).end()
      else res.end(req.headers.host?.startsWith('flood.') ? Buffer.alloc(65_536) : 'another platform')
    }).listen(Number(new URL(platform.edge_url).port), '127.0.0.2')
    await once(server, 'listening')
    t.after(() => void server.close())
    assert.equal((server.address() as AddressInfo).address, '127.0.0.2')
    const deep = (link: number) => ({ CNAME: `link${link + 1}.example.com` })
    for (let link = 0; link < 20; link++) names.zones.set(`link${link}.example.com`, deep(link))
    const troubles: Record<string, { zone: Parameters<NameServer['zones']['set']>[1]; line: RegExp }> = {
      loop: { zone: { CNAME: 'loop.wrong.example.com' }, line: /in a circle/ },
      deep: { zone: { CNAME: 'link0.example.com' }, line: /more than 8 CNAME/ },
      servfail: { zone: 'SERVFAIL', line: /could not answer .*SERVFAIL/ },
      none: { zone: 'NXDOMAIN', line: /NXDOMAIN/ },
      empty: { zone: {}, line: /NODATA/ },
      private: { zone: { A: ['10.0.0.1'] }, line: /not a public address/ },
      mixed: { zone: { A: ['127.0.0.1', '192.168.0.1'] }, line: /not a public address/ },
      moved: { zone: { A: ['127.0.0.2'] }, line: /status 302/ },
      flood: { zone: { A: ['127.0.0.2'] }, line: /more than 256 bytes/ },
      foreign: { zone: { A: ['127.0.0.2'] }, line: /not from this platform/ },
      down: { zone: { A: ['127.0.0.3'] }, line: /No connection/ },
    }
    const games = [await newGame(platform), await newGame(platform)]
    for (const [index, [label, { zone, line }]] of Object.entries(troubles).entries()) {
      const domain = `${label}.wrong.example.com`
      const game = games[index % 2]!
      names.zones.set(domain, zone)
      await addAndWait(game, domain)
      const told = await tell(game, domain)
      assert.equal(told.verification_status, 'pending', domain)
      assert.equal(told.verification_errors.length, 1)
      assert.match(told.verification_errors[0]!, line)
      assert.doesNotMatch(told.verification_errors[0]!, /[\r\n]/)
    }

    const { domain_id } = await row(games[1]!, 'none.wrong.example.com')
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
    assert.equal((await tell(games[1]!, 'none.wrong.example.com')).verification_status, 'failed')
  })

  await t.test('what fails for a while un-verifies nothing before 72 hours', async () => {
    names.zones.set('steady.example.com', HERE)
    await addAndWait(own, 'steady.example.com')
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
    names.zones.set('steady.example.com', HERE)
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
    const jobs = await startJobs(ctx, { check_domain: checkDomain, order_certificates: async () => {} })
    try {
      await until('it was looked at again', async () => {
        return (await row(game, 'killed.example.com')).failure_count > failure_count
      })
    } finally {
      await jobs.stop()
    }
  })

  await t.test('the edge proves a claim under its own domain only', async () => {
    const { domain_id, nonce } = await row(own, 'named.example.com')
    const path = `/.well-known/muster-domain/${domain_id}`
    assert.deepEqual(await ask(platform, 'named.example.com', path), { status: 200, body: nonce })
    assert.equal((await ask(platform, 'play.example.com', path)).status, 404)
    assert.equal((await ask(platform, 'named.example.com', `/.well-known/muster-domain/${UNKNOWN_ID}`)).status, 404)
    assert.equal((await ask(platform, '127.0.0.2', path)).status, 404)
  })
})
