// Notices: each kind of target against a strict stand-in of its service, from what happens on a platform to the message.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import {
  type BodyOf,
  createCloudToken,
  deleteNoticeTarget,
  drainNode,
  getOverview,
  listAuditEvents,
  listNoticeDeliveries,
  listNoticeTargets,
  type NoticeEvent,
  putNoticeTarget,
  resendNotice,
  testNoticeTarget,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import { sweep } from '../../src/cloud/sweep/sweep.ts'
import { newId, newRayId } from '../../src/ids.ts'
import { CHANNELS } from '../../src/wire/channels.ts'
import { dump } from '../cloud/planted.ts'
import { detailsOf, newGame, refused, type TestGame, UNKNOWN_ID } from '../cloud/steps.ts'
import { startMailServer } from '../identity/mail-server.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import {
  DISCORD_PATH,
  NTFY_TOKEN,
  NTFY_TOPIC,
  type Received,
  type Services,
  SLACK_PATH,
  startServices,
  TELEGRAM_TOKEN,
} from './services.ts'

type Put = BodyOf<typeof putNoticeTarget>

/** More than the collector waits between two reads of what is wrong. */
const STATES_MS = 20_000
const DAY_MS = 86_400_000

let platform: Platform
let services: Services

const put = (body: Put) => platform.client.call(putNoticeTarget, { body })
const webhook = (name: string, events: NoticeEvent[], rest: Partial<Put> = {}): Put => ({
  ...{ name, kind: 'webhook', url: `${services.url}/hook?${name}`, events },
  ...rest,
})
/** What a webhook with this name got, as JSON. */
const got = (name: string): Record<string, unknown>[] =>
  services.received
    .filter(({ path, status }) => path === `/hook?${name}` && status === 200)
    .map(({ body }) => JSON.parse(body) as Record<string, unknown>)

/** Has the collector look now, also at what is wrong. */
async function collect(): Promise<void> {
  platform.advance(STATES_MS)
  await platform.ctx.listener.notify(CHANNELS.notices)
}

/** The first pass takes what is wrong already as known. */
async function firstPass(): Promise<void> {
  await until('the first pass', async () => {
    await collect()
    const reader = await platform.ctx.db.selectFrom('notice_reader').selectAll().executeTakeFirst()
    return reader?.states_ts !== null && reader !== undefined
  })
}

async function deploy({ game_id, prod_id, version_id }: TestGame, is_rollback = false): Promise<void> {
  const params = { game_id, namespace_id: prod_id }
  await platform.client.call(updateGameNamespaceVersion, { params, body: { version_id, is_rollback } })
}

/** A lobby that ended, as its runner and its book write it. */
async function endedLobby(game: TestGame, end: { exit_reason: string; exit_code: number | null; stop_reason: string }) {
  const now = new Date(platform.ctx.now())
  const lobby_id = newId(now.getTime())
  const { db } = platform.ctx
  await db
    .insertInto('lobbies')
    .values({
      ...{ lobby_id, namespace_id: game.prod_id, shard: 0, version_id: game.version_id, game_mode: 'default' },
      ...{ region: 'local', node_id: 'machine-1', publicity: 'public', is_custom: false, is_closed: false, tags: '{}' },
      ...{ max_players_normal: 4, max_players_direct: 4, max_players_party: 4, lobby_config: null, state: null },
      ...{ player_count: 0, player_deadline_ms: 1, idle_grace_ms: 1, create_ts: now, ready_deadline_ts: now },
      ...{ ready_ts: null, idle_ts: null, stop_ts: now, stop_reason: end.stop_reason, connections_at_stop: null },
      ...{ creator_identity_id: null, ray_id: newRayId() },
    })
    .execute()
  await db
    .insertInto('lobby_runs')
    .values({
      ...{
        lobby_id,
        runner_id: 'machine-1',
        driver: 'process',
        handle: '{}',
        ports: '{}',
        start_ts: now,
        exit_ts: now,
      },
      ...{ exit_code: end.exit_code, exit_reason: end.exit_reason, log_tail: '["first line","Error: no map"]' },
      ...{ namespace_id: game.prod_id, region: 'local', cpu_cores: 1, game_id: game.game_id, group_id: game.group_id },
      build_id: null,
    })
    .execute()
  return lobby_id
}

test('notices', async (t) => {
  const mail = await startMailServer(t)
  services = await startServices(t)
  platform = await startPlatform(t, {
    roles: 'api',
    env: {
      MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8',
      ...{ MUSTER_SMTP_URL: mail.url, MUSTER_MAIL_FROM: 'm@example.com' },
    },
  })
  const game = await newGame(platform)
  const of_game = { game_id: game.game_id }

  await t.test(
    'each kind of target takes a test in the form that its service documents, and shows no secret',
    async () => {
      const targets: Put[] = [
        { ...of_game, name: 'discord', kind: 'discord', url: services.url + DISCORD_PATH, events: ['deploy_begun'] },
        { ...of_game, name: 'slack', kind: 'slack', url: services.url + SLACK_PATH, events: ['deploy_begun'] },
        {
          ...{ ...of_game, name: 'telegram', kind: 'telegram', url: services.url, token: TELEGRAM_TOKEN },
          ...{ chat_id: '-1001234567890', events: ['deploy_begun'] },
        },
        {
          ...{ ...of_game, name: 'ntfy', kind: 'ntfy', url: services.url, token: NTFY_TOKEN, topic: NTFY_TOPIC },
          events: ['deploy_begun'],
        },
        { ...of_game, name: 'email', kind: 'email', addresses: ['Ada@example.com'], events: ['deploy_begun'] },
        { ...of_game, ...webhook('own', ['deploy_begun']), url: `${services.url}/hook` },
      ]
      for (const body of targets) {
        const { target_id, signing_key } = await put(body)
        if (signing_key !== undefined) services.signing_key = signing_key
        const { delivery } = await platform.client.call(testNoticeTarget, { params: { target_id } })
        assert.deepEqual([body.kind, delivery.state, delivery.event], [body.kind, 'delivered', 'test'])
      }
      assert.deepEqual(
        services.received.flatMap(({ faults }) => faults),
        [],
      )
      assert.equal(services.received.length, 5)
      assert.deepEqual(
        mail.letters.map(({ to }) => to),
        ['ada@example.com'],
      )
      assert.match(mail.letters[0]!.text, /Subject: \[Muster\] A test notice/)

      const shown = JSON.stringify([
        await platform.client.call(listNoticeTargets, { query: of_game }),
        await platform.client.call(listAuditEvents, { query: { group_id: game.group_id } }),
      ])
      assert.match(shown, /"member":"url","is_secret":true/)
      const places = { shown, rows: await dump(platform) }
      for (const [place, text] of Object.entries(places)) {
        for (const secret of [
          'plantedDiscord',
          'plantedSlack',
          'plantedTelegram',
          'plantedNtfy',
          'planted_topic',
          'whsec_',
        ]) {
          assert.ok(!text.includes(secret), `${secret} in ${place}`)
        }
      }
    },
  )

  await t.test(
    'a deploy reaches every kind with game, namespace, ray and a link, and passes the checks of its form',
    async () => {
      services.received.length = 0
      mail.letters.length = 0
      await deploy(game)
      await until('five messages and a mail', () => services.received.length === 5 && mail.letters.length === 1)
      assert.deepEqual(
        services.received.flatMap(({ faults }) => faults),
        [],
      )
      const own = services.received.find(({ path }) => path === '/hook')!
      const notice = JSON.parse(own.body) as Record<string, string>
      assert.equal(notice.notice_id, own.headers['webhook-id'])
      assert.deepEqual(
        [notice.event, notice.game_id, notice.namespace_id, notice.namespace_name],
        ['deploy_begun', game.game_id, game.prod_id, 'prod'],
      )
      assert.ok(notice.url!.endsWith(`/games/${game.game_id}/namespaces/${game.prod_id}`))
      assert.match(notice.ray_id!, /^[0-9a-f-]{36}$/)
      for (const { body } of services.received) assert.ok(body.includes(notice.ray_id!) && body.includes('prod'), body)
    },
  )

  await t.test('a forged or later signature does not verify', async () => {
    const own = services.received.find(({ path }) => path === '/hook')!
    const statusOf = async (change: Partial<Received>, headers: Record<string, string> = {}): Promise<number> => {
      const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature } = own.headers
      const sent = { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature, ...headers }
      const answer = await fetch(`${services.url}/hook`, {
        ...{ method: 'POST', body: change.body ?? own.body },
        headers: { 'content-type': 'application/json', ...(sent as Record<string, string>) },
      })
      return answer.status
    }
    assert.equal(await statusOf({}), 200)
    assert.equal(await statusOf({ body: own.body.replace('deploy_begun', 'deploy_live!') }), 400)
    assert.equal(await statusOf({}, { 'webhook-timestamp': String(Number(own.headers['webhook-timestamp']) + 1) }), 400)
    assert.equal(await statusOf({}, { 'webhook-id': UNKNOWN_ID }), 400)
  })

  await t.test('the example of the documentation verifies what a webhook gets, and nothing else', async () => {
    const own = services.received.find(({ path }) => path === '/hook')!
    const guide = await readFile(new URL('../../../docs/notices.md', import.meta.url), 'utf8')
    const [, example] = /```js\n([\s\S]*?)```/.exec(guide) ?? []
    const source = `data:text/javascript,${encodeURIComponent(example!)}`
    const { isGenuine } = (await import(source)) as { isGenuine: (...of: [object, string, string]) => boolean }
    assert.equal(isGenuine(own.headers, own.body, services.signing_key), true)
    assert.equal(isGenuine(own.headers, `${own.body} `, services.signing_key), false)
    assert.equal(isGenuine(own.headers, own.body, `whsec_${'A'.repeat(44)}`), false)
    assert.equal(isGenuine({ ...own.headers, 'webhook-timestamp': '1' }, own.body, services.signing_key), false)
    assert.equal(isGenuine({}, own.body, services.signing_key), false)
  })

  await t.test('a target only gets the events, games and namespaces that it names, after it was made', async () => {
    const other = await newGame(platform)
    services.reply = ({ path }) => (path.startsWith('/hook?') ? { status: 200 } : null)
    await put({ group_id: game.group_id, ...webhook('group', ['deploy_begun', 'deploy_rolled_back', 'token_made']) })
    await put({ ...of_game, ...webhook('staging', ['deploy_rolled_back'], { namespace_ids: [game.staging_id] }) })
    await put(webhook('platform', ['deploy_rolled_back'], { game_ids: [other.game_id] }))
    await deploy(game, true)
    await deploy(other, true)
    await platform.client.call(createCloudToken, { params: of_game })
    await until('the notices', () => got('group').length === 2 && got('platform').length === 1)
    assert.deepEqual(
      [got('group').map(({ event }) => event), got('staging').length, got('platform').map(({ game_id }) => game_id)],
      [['deploy_rolled_back', 'token_made'], 0, [other.game_id]],
    )
  })

  await t.test(
    'servers that crash in a row, or are never ready, are noticed once with reason, machine and last lines',
    async () => {
      await put({ ...of_game, ...webhook('crash', ['servers_crashing', 'never_ready']) })
      await firstPass()
      const crash = { exit_reason: 'exit', exit_code: 3, stop_reason: 'exited' }
      for (let count = 0; count < 3; count++) await endedLobby(game, crash)
      await collect()
      await until('the crash', () => got('crash').length === 1)
      const [notice] = got('crash')
      assert.deepEqual(
        [notice!.event, notice!.text, notice!.node_id, notice!.lines],
        [
          'servers_crashing',
          'The last 3 servers failed; the last one ended with exit code 3.',
          'machine-1',
          ['first line', 'Error: no map'],
        ],
      )
      const lobby_id = await endedLobby(game, { exit_reason: 'stopped', exit_code: null, stop_reason: 'never_ready' })
      await collect()
      await until('the server that was never ready', () => got('crash').length === 2)
      assert.deepEqual([got('crash')[1]!.event, got('crash')[1]!.lobby_id], ['never_ready', lobby_id])
    },
  )

  await t.test('a full region, a failing captcha and a failing verification are noticed with a ray', async () => {
    await put({ ...of_game, ...webhook('refused', ['region_full', 'captcha_failing', 'verification_failing']) })
    const codes = ['MATCHMAKER_REGION_FULL', 'CAPTCHA_PROVIDER_FAILED', 'MATCHMAKER_VERIFICATION_REQUEST_FAILED']
    await platform.ctx.db
      .insertInto('explanations')
      .values(
        codes.map((code) => ({
          ...{ ray_id: newRayId(), namespace_id: game.prod_id, operation: 'lobbies.find', duration_us: '1', code },
          ...{ create_ts: new Date(platform.ctx.now()), explanation: '{}' },
        })),
      )
      .execute()
    await collect()
    await until('three notices', () => got('refused').length === 3)
    const events = got('refused').map(({ event }) => event)
    assert.deepEqual(events.toSorted(), ['captcha_failing', 'region_full', 'verification_failing'])
    assert.ok(got('refused').filter(({ ray_id }) => ray_id !== undefined).length >= 2)
    // What lasts is not noticed again.
    await collect()
    await deploy(game)
    await until('the deploy', () => got('group').some(({ event }) => event === 'deploy_begun'))
    assert.equal(got('refused').length, 3)
  })

  await t.test(
    'a node that is away, back and drained, a low disk and a backup are noticed to the platform',
    async () => {
      await put(webhook('nodes', ['node_away', 'node_back', 'node_drained', 'disk_low', 'backup_done']))
      const { db, pool } = platform.ctx
      const row = { regions: ['local'], disk_free_bytes: 1, cpu_cores: 1, memory_mb: 1, refusal: null }
      const machine = { used_cpu_cores: null, used_memory_mb: null, machine_cpu_cores: null, machine_memory_mb: null }
      await db
        .insertInto('runners')
        .values({ runner_id: 'machine-1', ...row, ...machine })
        .execute()
      await collect()
      await until('the disk', () => got('nodes').some(({ event }) => event === 'disk_low'))
      await pool.query(`update runners set ts = now() - interval '1 minute'`)
      await until('the node that is away', async () => {
        await collect()
        return got('nodes').some(({ event, node_id }) => event === 'node_away' && node_id === 'machine-1')
      })
      await pool.query(`update runners set ts = now() + interval '1 hour'`)
      await collect()
      await until('the node that is back', () =>
        got('nodes').some(({ event, node_id }) => event === 'node_back' && node_id),
      )
      await platform.client.call(drainNode, { body: { node_id: 'machine-1' } })
      await collect()
      await until('the node that is drained', () => got('nodes').some(({ event }) => event === 'node_drained'))
      const at = new Date(platform.ctx.now())
      const sizes = { row_count: 1, object_count: 2, object_bytes: 3, lacking_count: 0 }
      await db
        .insertInto('backups')
        .values({ backup_id: newId(at.getTime()), folder: '/backup', create_ts: at, end_ts: at, ...sizes })
        .execute()
      await collect()
      await until('the backup', () => got('nodes').some(({ event }) => event === 'backup_done'))
    },
  )

  await t.test(
    'a sign-in from an address that the person has not used is noticed, and one from a used network is not',
    async () => {
      await put(webhook('sign-in', ['sign_in_new_place']))
      const user_id = newId(platform.ctx.now())
      const signIn = async (client_ip: string): Promise<void> => {
        const now_ms = platform.ctx.now()
        platform.advance(1)
        await platform.ctx.db
          .insertInto('audit_events')
          .values({
            ...{
              event_id: newId(now_ms),
              create_ts: new Date(now_ms),
              group_id: null,
              game_id: null,
              namespace_id: null,
            },
            ...{ actor_kind: 'user', user_id, actor_name: 'Ada', token_id: null, client_ip, ray_id: newRayId() },
            ...{ operation: 'auth.identity.email.completeVerification', outcome: 'done', code: null, changes: '[]' },
            dropped_count: 0,
          })
          .execute()
      }
      for (const ip of ['2001:db8:0:1::1', '2001:db8:0:1::2', '203.0.113.7', '203.0.113.7']) await signIn(ip)
      await collect()
      await until('the sign-in', () => got('sign-in').length > 0)
      assert.deepEqual(
        got('sign-in').map(({ text }) => text),
        ['From 203.0.113.7.'],
      )
    },
  )

  await t.test("Discord's retry_after is waited for, and is no failure", async () => {
    const times: number[] = []
    services.reply = ({ path }) => {
      if (path.startsWith('/hook')) return { status: 200 }
      if (path !== DISCORD_PATH) return null
      times.push(performance.now())
      if (times.length > 1) return null
      return { status: 429, body: { message: 'You are being rate limited.', retry_after: 0.7, global: false } }
    }
    await deploy(game)
    await until('the second request', () => times.length === 2)
    assert.ok(times[1]! - times[0]! >= 690, `${times[1]! - times[0]!} ms`)
    const [target] = await targetsOf('discord')
    const delivery = await until('the delivery', async () => {
      const { deliveries } = await platform.client.call(listNoticeDeliveries, {
        params: { target_id: target!.target_id },
      })
      return deliveries.find(({ state, event }) => state === 'delivered' && event === 'deploy_begun')
    })
    assert.deepEqual([delivery.attempt_count, delivery.status], [1, 204])
  })

  await t.test(
    'a dead target is paused and says so to the overview, the audit log and the other targets, then goes on',
    async () => {
      await put({ ...of_game, ...webhook('others', ['target_paused']) })
      const { target_id } = await put({ ...of_game, ...webhook('dead', ['deploy_begun']), url: `${services.url}/gone` })
      services.reply = ({ path }) => (path.startsWith('/hook') ? { status: 200 } : null)
      await deploy(game)
      const target = await until('the pause', async () => (await targetsOf('dead')).find(({ is_paused }) => is_paused))
      assert.deepEqual([target.pause_reason, target.waiting_count], ['It returned 404: no such webhook', 1])
      await until('the notice of the pause', () => got('others').length === 1)
      const { problems } = await platform.client.call(getOverview, { query: { group_id: game.group_id } })
      assert.ok(problems.some(({ kind, title }) => kind === 'notice_target_paused' && title.includes('dead')))
      await put({ ...of_game, ...webhook('dead', ['deploy_begun']) })
      await until('what waited', () => got('dead').length === 1)

      const [delivered] = (await platform.client.call(listNoticeDeliveries, { params: { target_id } })).deliveries
      assert.deepEqual([delivered!.state, delivered!.status], ['delivered', 200])
      const { notice_id } = delivered!
      await platform.client.call(resendNotice, { params: { target_id, notice_id } })
      await until('the notice again', () => got('dead').length === 2)
      assert.equal(got('dead')[0]!.notice_id, got('dead')[1]!.notice_id)
    },
  )

  await t.test('mistakes name the field, and other people see nothing', async () => {
    const errorOf = async (body: Put) => detailsOf(await refused('VALIDATION_ERROR', put(body)))[0]
    const base = { ...of_game, name: 'bad', events: ['deploy_begun'] satisfies NoticeEvent[] }
    assert.match(JSON.stringify(await errorOf({ ...base, kind: 'discord' })), /"path":\["url"\],"reason":"required"/)
    assert.match(
      JSON.stringify(await errorOf({ ...base, kind: 'slack', url: 'https://10.0.0.1/x' })),
      /"url"\],"reason":"invalid"/,
    )
    assert.match(
      JSON.stringify(await errorOf({ ...base, kind: 'telegram', token: 'x', chat_id: '1' })),
      /"token"\],"reason":"invalid"/,
    )
    assert.match(
      JSON.stringify(await errorOf({ ...base, ...webhook('bad', ['disk_low']), ...of_game })),
      /"events","0"\]/,
    )
    const cloud = game.cloud.call(putNoticeTarget, {
      body: { ...base, kind: 'email', addresses: ['stranger@example.com'] },
    })
    assert.match(JSON.stringify(detailsOf(await refused('VALIDATION_ERROR', cloud))), /"addresses","0"\]/)
    await refused('API_FORBIDDEN', game.cloud.call(listNoticeTargets, {}))
    const [target] = await targetsOf('own')
    const other = await newGame(platform)
    const call = other.cloud.call(testNoticeTarget, { params: { target_id: target!.target_id } })
    await refused('NOTICE_TARGET_NOT_FOUND', call)
  })

  await t.test('a token is not sent to another server than it was given for', async () => {
    const elsewhere = `${services.url}/elsewhere`
    const body: Put = { ...of_game, name: 'ntfy', kind: 'ntfy', url: elsewhere, topic: 'x', events: ['deploy_begun'] }
    const { target_id } = await put(body)
    services.received.length = 0
    await platform.client.call(testNoticeTarget, { params: { target_id } })
    assert.equal(services.received[0]!.headers.authorization, undefined)
  })

  await t.test('notices are removed after their time, and with the last target everything is', async () => {
    const { db } = platform.ctx
    const count = async () =>
      Number(
        (
          await db
            .selectFrom('notices')
            .select(({ fn }) => fn.countAll().as('count'))
            .executeTakeFirstOrThrow()
        ).count,
      )
    await until(
      'every notice to end',
      async () =>
        (await db.selectFrom('notices').where('state', '=', 'waiting').select('notice_id').execute()).length === 0,
    )
    const before = await count()
    platform.advance(13 * DAY_MS)
    await sweep(platform.ctx)
    assert.equal(await count(), before)
    platform.advance(2 * DAY_MS)
    await sweep(platform.ctx)
    assert.ok((await count()) < before)
    const targets = await db.selectFrom('notice_targets').select('target_id').execute()
    for (const { target_id } of targets) await platform.client.call(deleteNoticeTarget, { params: { target_id } })
    assert.equal(await count(), 0)
  })
})

async function targetsOf(name: string) {
  const games = await platform.ctx.db.selectFrom('notice_targets').selectAll().where('name', '=', name).execute()
  const [row] = games
  const scope = row?.game_id == null ? {} : { game_id: row.game_id }
  const { targets } = await platform.client.call(listNoticeTargets, { query: scope })
  return targets.filter((target) => target.name === name)
}
