// The status page of a game: through a real edge, and while PostgreSQL is stopped.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import {
  createStatusIncident,
  deleteStatusIncident,
  getStatusPage,
  listStatusIncidents,
  putStatusPage,
  STATUS_INCIDENTS_MAX,
  STATUS_PAGES_MAX,
  STATUS_UPDATES_MAX,
  updateStatusIncident,
} from '@musterhost/contract'
import pino from 'pino'
import { measurePages } from '../../src/cloud/status/measure.ts'
import { createProbes } from '../../src/cloud/status/probes.ts'
import { connect } from '../../src/database/connect.ts'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'
import { migrate } from '../../src/database/migrate.ts'
import type { StatusView } from '../../src/wire/status-view.ts'
import { detailsOf, refused, UNKNOWN_ID } from '../cloud/steps.ts'
import { get, type HttpResponse } from '../edge/get.ts'
import { startTestEdge } from '../edge/platform.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

const MINUTE_MS = 60_000
const PROBE_MS = 10_000
/** A minute of UTC begins here. */
const BEGIN_MS = Date.UTC(2026, 10, 30, 12, 0)
/** For a probe of a database that is away. */
const PROBE_MS_MAX = 500

type Reader = (path: string, headers?: Record<string, string>, method?: string) => Promise<HttpResponse>

function readerOf(platform: Pick<Platform, 'edge_url'>, host: string): Reader {
  const port = Number(new URL(platform.edge_url).port)
  return (path, headers = {}, method = 'GET') => get({ port }, path, { method, headers: { host, ...headers } })
}

test('a game writes its status page and incidents, and players read them as HTML, JSON and Atom', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  platform.playServers()
  const game = await platform.game()
  const { client, ctx } = platform
  const params = { game_id: game.game_id }
  const read = readerOf(platform, `${game.name_id}.cdn.localhost`)
  const page = async () => (await client.call(getStatusPage, { params })).status_page

  // Off by default: the path belongs to the site, and this game has none.
  assert.equal((await page()).is_enabled, false)
  assert.equal((await read('/status')).code, 'SITE_NOT_FOUND')
  await game.find()
  const body = { is_enabled: true, title: 'Is <Arena> up?', text: 'Help:\n& more' }
  const { status_page } = await client.call(putStatusPage, { params, body })
  assert.match(status_page.url, new RegExp(`//${game.name_id}\\.cdn\\.localhost.*/status$`))
  await until('the page is served', async () => (await read('/status')).status === 200)
  await until('the first minute is measured', async () => (await page()).measured_ts !== undefined)

  const html = await read('/status?x=1')
  assert.equal(html.headers['content-type'], 'text/html; charset=utf-8')
  assert.match(
    String(html.headers['content-security-policy']),
    /^default-src 'none'; style-src 'sha256-[^']+'; base-uri/,
  )
  assert.match(html.body.toString(), /<h1>Is &lt;Arena&gt; up\?<\/h1>/)
  assert.match(html.body.toString(), /Help:\n&amp; more/)
  assert.doesNotMatch(html.body.toString(), /<script|https?:\/\//)
  const packed = await read('/status', { 'accept-encoding': 'br, gzip' })
  assert.equal(packed.headers['content-encoding'], 'gzip')
  const plain = await read('/status')
  assert.ok(gunzipSync(packed.body).equals(plain.body))
  const known = await read('/status', { 'accept-encoding': 'gzip', 'if-none-match': packed.headers.etag ?? '' })
  assert.deepEqual([known.status, known.body.length], [304, 0])
  const head = await read('/status', {}, 'HEAD')
  assert.deepEqual([head.status, head.body.length], [200, 0])
  assert.equal((await read('/status', {}, 'POST')).code, 'API_METHOD_NOT_ALLOWED')
  assert.equal((await read('/status/other')).code, 'SITE_NOT_FOUND')

  const written = { title: 'Slow starts', impact: 'major', text: 'We look <b>into</b> it.' } as const
  const { incident_id } = await client.call(createStatusIncident, { params, body: written })
  const stateNow = async () => JSON.parse((await read('/status.json')).body.toString()) as StatusView
  await until('the incident is shown', async () => (await stateNow()).state === 'outage')
  assert.match((await read('/status')).body.toString(), /We look &lt;b&gt;into&lt;\/b&gt; it\./)
  const of_incident = { params: { ...params, incident_id } }
  const resolved = { state: 'resolved', text: 'Over & out' } as const
  const { update_id } = await client.call(updateStatusIncident, { ...of_incident, body: resolved })
  await until('it is over', async () => (await stateNow()).incidents[0]?.state === 'resolved')
  assert.notEqual((await stateNow()).state, 'outage')
  const feed = await read('/status.atom')
  assert.equal(feed.headers['content-type'], 'application/atom+xml; charset=utf-8')
  const ids = [...feed.body.toString().matchAll(/<id>(.*?)<\/id>/g)].map(([, id]) => id)
  assert.deepEqual(ids.slice(0, 2), [`urn:uuid:${game.game_id}`, `urn:uuid:${update_id}`])
  assert.equal(new Set(ids).size, 3)
  assert.match(feed.body.toString(), /<content type="text">Over &amp; out<\/content>/)
  // An update with another state opens it again.
  await client.call(updateStatusIncident, {
    ...of_incident,
    body: { state: 'monitoring', text: 'Again', title: 'New' },
  })
  const { incidents } = await client.call(listStatusIncidents, { params })
  assert.deepEqual(
    incidents.map(({ title, state, resolve_ts, updates }) => [
      title,
      state,
      resolve_ts,
      updates.map(({ text }) => text),
    ]),
    [['New', 'monitoring', undefined, ['Again', 'Over & out', written.text]]],
  )

  await ctx.pool.query(
    `insert into status_updates select gen_random_uuid(), $1, 'monitoring', 'x', now() from generate_series(4, ${STATUS_UPDATES_MAX})`,
    [incident_id],
  )
  const full = await refused('VALIDATION_ERROR', client.call(updateStatusIncident, { ...of_incident, body: resolved }))
  assert.deepEqual(detailsOf(full), [{ path: ['text'], reason: 'too_many' }])
  await ctx.pool.query(
    `insert into status_incidents select gen_random_uuid(), $1, 'x', 'resolved', 'none', now(), now(), now() from generate_series(2, ${STATUS_INCIDENTS_MAX})`,
    [game.game_id],
  )
  const many = await refused('VALIDATION_ERROR', client.call(createStatusIncident, { params, body: written }))
  assert.deepEqual(detailsOf(many), [{ path: ['title'], reason: 'too_many' }])
  const stranger = { params: { ...params, incident_id: UNKNOWN_ID } }
  await refused('STATUS_INCIDENT_NOT_FOUND', client.call(deleteStatusIncident, stranger))
  await client.call(deleteStatusIncident, of_incident)
  await until('it is gone', async () => !(await read('/status')).body.toString().includes(incident_id))

  const foreign = { params, body: { is_enabled: true, domain: 'status.example.com' } }
  const domain = await refused('VALIDATION_ERROR', client.call(putStatusPage, foreign))
  assert.deepEqual(detailsOf(domain), [{ path: ['domain'], reason: 'not_found' }])
  await ctx.pool.query(
    `insert into domains (domain_id, namespace_id, domain, verification_status, txt_value, cname_label, verification_errors)
      values (gen_random_uuid(), $1, 'status.example.com', 'active', 't', 'c', '[]')`,
    [game.namespace_id],
  )
  await client.call(putStatusPage, foreign)
  const onDomain = readerOf(platform, 'status.example.com')
  await until('the domain serves the page', async () => (await onDomain('/')).status === 200)
  assert.match((await onDomain('/')).body.toString(), /<h1>Status of Game<\/h1>/)
  assert.equal((await onDomain('/index.html')).code, 'API_NOT_FOUND')
  assert.equal((await onDomain('/status.json')).status, 200)

  await client.call(putStatusPage, { params, body: { is_enabled: false } })
  await until('the page is off', async () => (await read('/status')).code === 'SITE_NOT_FOUND')
  await insertPages(platform)
  const room = await refused('VALIDATION_ERROR', client.call(putStatusPage, { params, body: { is_enabled: true } }))
  assert.deepEqual(detailsOf(room), [{ path: ['is_enabled'], reason: 'too_many' }])
})

/** As many enabled pages as a platform may have. */
async function insertPages({ ctx }: Platform): Promise<void> {
  await ctx.pool.query(`
    with made as (
      insert into games (game_id, developer_group_id, name_id, display_name)
      select gen_random_uuid(), developer_group_id, 'many-' || number, 'Many'
      from (select developer_group_id from games limit 1) as one, generate_series(1, ${STATUS_PAGES_MAX}) as number
      returning game_id
    )
    insert into status_pages (game_id, namespace_id, is_enabled, measured_ts, view)
    select made.game_id, namespace_id, true, 'infinity', '{}' from made, (select namespace_id from namespaces limit 1) as one`)
}

test('a file of the site at /status is served while the page is off, and behind a password the page is not', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  await game.deploy(await game.site({ status: 'the file', 'index.html': 'first' }))
  assert.equal((await get(edge, '/status')).body.toString(), 'the file')
  const view: StatusView = {
    ...{ page_id: game.game_id, title: 'Puddle', text: '', state: 'operational', view_ts: new Date().toISOString() },
    ...{ measured_ts: null, day: '2026-11-30', player_count: 0, parts: [], incidents: [] },
  }
  await edge.ctx.db
    .insertInto('status_pages')
    .values({
      ...{ game_id: game.game_id, namespace_id: game.namespace_id, is_enabled: true, title: null, text: null },
      ...{ domain: null, recent: '{}', view: JSON.stringify(view) },
    })
    .execute()
  await edge.ctx.listener.notify('status_pages')
  const isPage = async () => (await get(edge, '/status')).body.toString().includes('<h1>Puddle</h1>')
  await until('the page is served', isPage)
  assert.equal((await get(edge, '/')).body.toString(), 'first')
  await edge.ctx.db.updateTable('namespaces').set({ cdn_auth_type: 'basic' }).execute()
  await edge.ctx.listener.notify('namespaces')
  await until('the site asks for a password', async () => (await get(edge, '/')).status === 401)
  assert.ok(await isPage())
  // An image that nothing has written for three minutes is not fresh.
  edge.advance(4 * MINUTE_MS)
  assert.match((await get(edge, '/status')).body.toString(), /No new measurement has arrived since/)
  await edge.ctx.db.deleteFrom('status_pages').execute()
  await edge.ctx.listener.notify('status_pages')
  await until('the page is gone', async () => !(await isPage()))
})

test('the page is served while PostgreSQL is stopped, and its bars show the minute afterwards', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-status-'))
  const log = pino({ level: 'silent' })
  await placeCluster(folder)
  const start = () => startEmbedded({ data_dir: folder, settings: { fsync: 'off' }, log })
  let database = await start()
  const connection = connect({ url: database.url, application_name: 'muster-test' })
  await migrate(connection.db)
  await connection.close()
  const platform = await startTwoLives(t, database.url)
  // After the platform, which has connections.
  t.after(async () => {
    await database.stop()
    await rm(folder, { recursive: true, force: true })
  })
  const { ctx, advance, name_id } = platform
  const read = readerOf(platform, `${name_id}.cdn.localhost`)
  await until('the page is served', async () => (await read('/status')).status === 200)
  const probes = createProbes(ctx, PROBE_MS_MAX)
  const probeMinute = async () => {
    for (let second = 0; second < MINUTE_MS; second += PROBE_MS) {
      await probes.probe()
      advance(PROBE_MS)
    }
  }
  await until('a matchmaker serves the namespace', async () => (await readServed(platform)) > 0)
  await probeMinute()

  await database.stop()
  await probeMinute()
  await until('the page says so', async () => (await read('/status')).body.toString().includes('not reachable'))
  const away = await read('/status.json')
  assert.equal(away.status, 200)
  const { state, is_fresh } = JSON.parse(away.body.toString()) as { state: string; is_fresh: boolean }
  assert.deepEqual([state, is_fresh], ['outage', false])

  database = await start()
  await until('a matchmaker serves again', async () => (await readServed(platform).catch(() => 0)) > 0)
  await probeMinute()
  advance(MINUTE_MS)
  await until('the minutes are measured', () => measurePages(ctx, probes).catch(() => false))
  const { rows } = await ctx.pool.query<{ region: string; measured_count: number; bad_count: number }>(
    `select region, measured_count, bad_count from status_days order by region`,
  )
  const find = rows.find(({ region }) => region === '')
  assert.deepEqual(find, { region: '', measured_count: 3, bad_count: 1 })
  await ctx.listener.notify('status_pages')
  await until('the page is fresh again', async () => !(await read('/status')).body.toString().includes('not reachable'))
  const html = (await read('/status')).body.toString()
  assert.match(html, /1 of 3 measured minutes were bad/)
})

async function readServed({ ctx }: Platform): Promise<number> {
  const { rows } = await ctx.pool.query<{ count: number }>(
    `select count(*)::integer as count from shard_leases join matchmakers using (writer)
      where shard_leases.is_served and seen_ts > now() - interval '20 seconds'`,
  )
  return rows[0]!.count
}

/** The api role makes the game and its page, and ends: the test probes and measures in its place, by a clock that it moves. */
async function startTwoLives(t: TestContext, database_url: string): Promise<Platform & { name_id: string }> {
  const data_dir = await mkdtemp(join(tmpdir(), 'muster-status-'))
  const shared = { database_url, data_dir, held_ms: BEGIN_MS }
  const first = await startPlatform(t, { ...shared, roles: 'api' })
  const { game_id, name_id } = await first.game()
  await first.client.call(putStatusPage, { params: { game_id }, body: { is_enabled: true } })
  await first.close()
  await first.ctx.close().catch(() => {})
  const second = await startPlatform(t, { ...shared, roles: 'matchmaker,edge' })
  await second.ctx.pool.query('update status_pages set measured_ts = $1', [new Date(BEGIN_MS)])
  await second.ctx.pool.query('delete from status_days')
  t.after(() => rm(data_dir, { recursive: true, force: true }))
  return { ...second, name_id }
}
