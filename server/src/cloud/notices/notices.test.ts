// The pure parts of notices: conditions that begin and end, players, responses of targets, and texts of any length.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NOTICE_EVENT_NAMES } from '@musterhost/contract'
import { isFor } from './audience.ts'
import { type ConditionState, compareConditions, type StoredState } from './condition-changes.ts'
import type { Condition } from './conditions.ts'
import { type Message, messageOf } from './messages.ts'
import { type FoundNotice, noticeOf } from './notice.ts'
import { backoffMs, outcomeOf, WAIT_MS_MAX } from './outcome.ts'
import { comparePlayers, type PlayerState } from './player-notices.ts'
import { excerptOf } from './send.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const AWAY: Condition = { ...condition('node_away'), key: 'away m', node_id: 'm', hold_ms: 30_000 }

function condition(event: Condition['event']): Condition {
  return { key: event, event, severity: 'error', title: 'T', text: 't', hold_ms: 0 }
}

/** The events that each pass finds: `passes` are the time and the conditions of each. */
function eventsOf(passes: [number, Condition[]][]): string[][] {
  const stored = new Map<string, StoredState>()
  return passes.map(([now_ms, conditions], index) => {
    const changes = compareConditions(conditions, stored, { now_ms, is_first: index === 0 })
    for (const [key, value] of changes.put) stored.set(key, { value: value as ConditionState, seen_ms: now_ms })
    for (const key of changes.removed) stored.delete(key)
    return changes.found.map(({ event }) => event)
  })
}

test('a condition is noticed once while it lasts, and again when it comes back later', () => {
  const full = condition('region_full')
  assert.deepEqual(
    eventsOf([
      [0, []],
      [1, [full]],
      [2 * MINUTE_MS, [full]],
      [3 * MINUTE_MS, []],
      [4 * MINUTE_MS, [full]],
      [20 * MINUTE_MS, []],
      [21 * MINUTE_MS, [full]],
    ]),
    [[], ['region_full'], [], [], [], [], ['region_full']],
  )
})

test('what is wrong when the first target is made is not noticed', () => {
  assert.deepEqual(
    eventsOf([
      [0, [condition('disk_low')]],
      [MINUTE_MS, [condition('disk_low')]],
    ]),
    [[], []],
  )
})

test('a node is away after half a minute without a report, and back at once; a shorter silence is not noticed', () => {
  const passes: [number, Condition[]][] = [
    [0, []],
    [15_000, [AWAY]],
    [30_000, []],
    [45_000, [AWAY]],
    [75_000, [AWAY]],
    [90_000, []],
  ]
  assert.deepEqual(eventsOf(passes), [[], [], [], [], ['node_away'], ['node_back']])
})

test('the first players after a quiet hour and a record are noticed, and growing counts make one record an hour', () => {
  let state: PlayerState = { last_ms: 0, record: 12, record_ms: 0 }
  const start_ms = 100 * HOUR_MS
  const events = [
    [0, 3],
    [1, 20],
    [2, 30],
    [50, 0],
    [109, 0],
    [113, 1],
    [120, 31],
  ].map(([minute, player_count]) => {
    const now_ms = start_ms + minute! * MINUTE_MS
    const change = comparePlayers({ namespace_id: 'n' }, state, { now_ms, player_count: player_count! })
    state = change.state ?? state
    return change.found.map(({ event }) => event)
  })
  assert.deepEqual(events, [['players_first'], ['players_record'], [], [], [], ['players_first'], ['players_record']])
})

test('a target asks to wait with a body or a header, and each other response has its outcome', () => {
  const kindOf = (status: number) => outcomeOf(status, {}, '', 0).kind
  const waitOf = (headers: Record<string, string>, body: string) => outcomeOf(429, headers, body, 1_000)
  assert.deepEqual(waitOf({}, '{"retry_after":0.65}'), { kind: 'wait', wait_ms: 650 })
  assert.deepEqual(waitOf({}, '{"ok":false,"parameters":{"retry_after":7}}'), { kind: 'wait', wait_ms: 7_000 })
  assert.deepEqual(waitOf({ 'retry-after': '30' }, 'no json'), { kind: 'wait', wait_ms: 30_000 })
  assert.deepEqual(waitOf({ 'retry-after': '1e99' }, 'null'), { kind: 'wait', wait_ms: 5_000 })
  assert.deepEqual(waitOf({}, '{"retry_after":1e300}'), { kind: 'wait', wait_ms: WAIT_MS_MAX })
  assert.deepEqual(waitOf({}, '{"retry_after":-5}'), { kind: 'wait', wait_ms: 0 })
  assert.deepEqual([200, 204, 302, 400, 401, 404, 408, 410, 413, 500, 503].map(kindOf), [
    'delivered',
    'delivered',
    'refused',
    'refused',
    'dead',
    'dead',
    'retry',
    'dead',
    'refused',
    'retry',
    'retry',
  ])
  assert.deepEqual(
    [1, 2, 12, 20].map((attempt) => backoffMs(attempt)),
    [1_000, 2_000, 1_800_000, 1_800_000],
  )
})

test('messages keep the limits of their service with the longest texts, and nothing in them is markup', () => {
  const long = `@everyone <!channel> \`\`\`${'😀 & < > * _ '.repeat(1_000)}`
  const found: FoundNotice = {
    ...{ source: 's', event: 'servers_crashing', severity: 'error', title: long, text: long, ts_ms: 0 },
    ...{ game_id: 'g', namespace_id: 'n', lobby_id: 'l', node_id: 'm'.repeat(900), lines: new Array(50).fill(long) },
  }
  const notice = noticeOf(found, 'id', 'https://example.org', new Map([['g', long]]))
  const secrets = { url: 'https://example.org/x', token: '1:x', topic: 't', signing_key: 'whsec_AAAA' }
  const sent = (kind: 'discord' | 'slack' | 'telegram' | 'ntfy'): Message =>
    messageOf({ kind, secrets, chat_id: '-5' }, notice, 0)
  const discord = JSON.parse(sent('discord').body) as {
    embeds: { title: string; description: string; fields: { value: string }[] }[]
  }
  const [embed] = discord.embeds
  assert.ok(embed!.title.length <= 256 && embed!.description.length <= 4_096)
  assert.ok(embed!.fields.every(({ value }) => value.length <= 1_024))
  assert.ok(JSON.stringify(embed).length < 6_000)
  const slack = JSON.parse(sent('slack').body) as { blocks: { text?: { text: string } }[] }
  assert.ok(slack.blocks[0]!.text!.text.length <= 150 && slack.blocks[1]!.text!.text.length <= 3_000)
  assert.ok(!slack.blocks[1]!.text!.text.includes('<!channel>'))
  assert.ok((JSON.parse(sent('telegram').body) as { text: string }).text.length <= 4_096)
  const ntfy = JSON.parse(sent('ntfy').body) as { message: string }
  assert.ok(Buffer.byteLength(ntfy.message) <= 4_096 && !ntfy.message.includes('\ufffd'))
})

test('an excerpt of a response contains no part of the address and no token', () => {
  const secrets = { url: 'https://discord.com/api/webhooks/118123/AbCdEfGhIjKl', token: 'secret-token' }
  const text = 'Cannot POST /api/webhooks/118123/AbCdEfGhIjKl with secret-token, AbCdEfGhIjKl'
  assert.doesNotMatch(excerptOf(text, secrets), /AbCdEfGhIjKl|secret-token/)
  assert.ok(excerptOf('x'.repeat(100_000), secrets).length <= 300)
})

test('a target of a game does not get what belongs to its group, to another game or to no game', () => {
  const settings = { events: [...NOTICE_EVENT_NAMES], by_admin: true }
  const target = { target_id: 't', group_id: null, game_id: 'g', settings, create_ts: new Date(5) }
  const found: FoundNotice = { ...condition('limit_near'), event: 'limit_near', source: 's', ts_ms: 6 }
  assert.equal(isFor(target, { ...found, game_id: 'g', group_id: 'q' }, new Map()), true)
  assert.equal(isFor(target, { ...found, game_id: 'h' }, new Map()), false)
  assert.equal(isFor(target, { ...found, group_id: 'q' }, new Map()), false)
  assert.equal(isFor(target, { ...found, game_id: 'g', ts_ms: 4 }, new Map()), false)
  const of_group = { ...target, game_id: null, group_id: 'q' }
  const person: FoundNotice = { ...found, event: 'sign_in_new_place', user_id: 'u' }
  assert.equal(isFor(of_group, person, new Map([['u', new Set(['q'])]])), true)
  assert.equal(isFor(of_group, person, new Map()), false)
})
