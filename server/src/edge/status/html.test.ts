import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { acceptedEncodings } from '@musterhost/contract/site'
import { STATUS_DAYS, type StatusDay, type StatusView } from '../../wire/status-view.ts'
import { renderAtom, renderJson } from './feeds.ts'
import { HTML_POLICY, kindOfDay, renderHtml } from './html.ts'

const DAYS: StatusDay[] = Array.from({ length: STATUS_DAYS }, (_, at) => [at < 30 ? 0 : 1_440, at === 89 ? 2 : 0])
const VIEW: StatusView = {
  ...{ page_id: '01a22e40-8d16-7dbc-9133-183ce2e0ffb9', title: 'A & B', text: '<i>', state: 'operational' },
  ...{ view_ts: '2026-11-30T20:45:00.000Z', measured_ts: null, day: '2026-11-30', player_count: 1 },
  parts: [
    { region: '', name: 'Finding a game', state: 'operational', days: DAYS, player_count: null, median_ms: 1_234 },
  ],
  incidents: [],
}

test('a day without a measured minute has no data, and is not good', () => {
  assert.deepEqual(
    (
      [
        [0, 0],
        [1_440, 0],
        [1_440, 1],
        [1_440, 72],
        [10, 10],
      ] as const
    ).map(kindOfDay),
    ['n', 'g', 'w', 'b', 'b'],
  )
})

test('the page says in text what its bars show, and loads and runs nothing', () => {
  const html = renderHtml(VIEW, null)
  assert.equal(html.match(/<rect /g)?.length, STATUS_DAYS)
  assert.equal(html.match(/<rect class="n"/g)?.length, 30)
  assert.match(
    html,
    /aria-label="Finding a game: 99\.997 % of 86,400 measured minutes were good, 2 were bad\. No data for 30 of 90 days\."/,
  )
  assert.match(html, /<li>2026-11-30: 2 of 1,440 measured minutes were bad<\/li>/)
  assert.match(html, /<title>2026-09-02: no data<\/title>/)
  assert.match(html, /A seat takes 1\.2 s/)
  assert.match(html, /&lt;i&gt;/)
  assert.doesNotMatch(html, /<script|style="|src=|url\(|@import/)
  const style = /<style>([\s\S]*?)<\/style>/.exec(html)?.[1] ?? ''
  const hash = createHash('sha256').update(style).digest('base64')
  assert.ok(HTML_POLICY.includes(`style-src 'sha256-${hash}'`))
})

test('an edge that cannot reach the database shows an outage with its begin, and a late image is not known', () => {
  const away = { kind: 'away', since_ts: '2026-11-30T20:46:00.000Z' } as const
  const html = renderHtml(VIEW, away)
  assert.match(html, /<p class="now outage">There is an outage<\/p>/)
  assert.match(
    html,
    /not reachable from this server since <time datetime="2026-11-30T20:46:00.000Z">2026-11-30 20:46 UTC/,
  )
  const json = JSON.parse(renderJson(VIEW, away)) as { state: string; is_fresh: boolean; stale_since_ts: string }
  assert.deepEqual([json.state, json.is_fresh, json.stale_since_ts], ['outage', false, away.since_ts])
  assert.match(renderHtml(VIEW, { ...away, kind: 'late' }), /Not measured now/)
})

test('the feed has an entry for each update, newest first, with escaped texts', () => {
  const update = (number: number) => ({
    ...{ update_id: `01a22e40-8d16-7dbc-9133-00000000000${number}`, state: 'monitoring', text: `${number} < 3` },
    create_ts: `2026-11-30T20:4${number}:00.000Z`,
  })
  const incident = {
    ...{
      incident_id: '01a22e40-8d16-7dbc-9133-0000000000aa',
      title: '"Slow"',
      state: 'monitoring',
      impact: 'minor' as const,
    },
    ...{ create_ts: update(1).create_ts, update_ts: update(2).create_ts, resolve_ts: null },
    updates: [update(2), update(1)],
  } as const
  const feed = renderAtom({ ...VIEW, incidents: [incident] })
  assert.match(feed, /<title>A &amp; B<\/title>\n<updated>2026-11-30T20:42:00\.000Z<\/updated>/)
  assert.deepEqual(
    [...feed.matchAll(/<content type="text">(.*?)<\/content>/g)].map(([, text]) => text),
    ['2 &lt; 3', '1 &lt; 3'],
  )
  assert.match(feed, /<title>&quot;Slow&quot; \(monitoring\)<\/title>/)
  // Without an incident, the feed has the required members too.
  assert.match(renderAtom(VIEW), /<updated>2026-11-30T00:00:00\.000Z<\/updated>/)
})

test('gzip is sent only to a client that accepts it', () => {
  const headers = [undefined, '', 'br', 'gzip;q=0', 'gzip; q=0.000', 'br, gzip', 'GZIP;q=0.5', '*']
  assert.deepEqual(
    headers.map((header) => acceptedEncodings(header).gzip),
    [false, false, false, false, false, true, true, true],
  )
})
