// The requests for seats of a namespace, as a page receives them when they end.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FINDS_MAX, type FindsMessage, getAnalyticsMatchmakerFinds, type LiveFind } from '@musterhost/contract'
import { WebSocket } from 'ws'
import { LiveFinds } from '../../../src/cloud/lobbies/find-feeds.ts'
import { idOfName } from '../../../src/ids.ts'
import { LONG_MS, UNKNOWN_ID } from '../../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../../support/platform.ts'
import { failureOf } from '../../support/refusal.ts'
import { until } from '../../support/until.ts'

const GAME_MODES = { default: { idle_grace_ms: LONG_MS, max_players: 8 } }

function openPage(platform: Platform, { game_id, namespace_id }: TestGame, watch_index?: string) {
  const query = new URLSearchParams({
    token: platform.token,
    ...(watch_index === undefined ? {} : { watch_index }),
  })
  const path = `/cloud/games/${game_id}/namespaces/${namespace_id}/analytics/matchmaker/finds`
  const socket = new WebSocket(`${platform.api_url.replace('http', 'ws')}${path}?${query}`)
  const page = { socket, finds: [] as LiveFind[], kinds: [] as string[], index: '' }
  socket.on('message', (data) => {
    const message = JSON.parse(String(data)) as FindsMessage
    page.kinds.push(message.kind)
    page.index = message.index
    if (message.kind !== 'heartbeat') page.finds.push(...message.finds)
  })
  return page
}

test('a page receives each kept request when it ends, and continues after a lost connection without a gap', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const [game, other] = [
    await platform.game({ matchmaker: { game_modes: GAME_MODES } }),
    await platform.game({ matchmaker: { game_modes: GAME_MODES } }),
  ]
  const page = openPage(platform, game)
  await until('the snapshot', () => page.kinds.length > 0)
  assert.deepEqual([page.kinds, page.finds], [['snapshot'], []])
  const seat = await game.find()
  await other.find()
  const end_ms = performance.now()
  const [found] = await until('the seat is shown', () => page.finds.length > 0 && page.finds)
  assert.ok(performance.now() - end_ms < 1_900, 'a notification came, and not the look after two seconds')
  const { ray_id, create_ts, duration, ...rest } = found!
  assert.match(ray_id, /^[0-9a-f-]{36}$/)
  assert.ok(Date.parse(create_ts) > 0 && duration > 0)
  assert.deepEqual(rest, {
    operation: 'lobbies.find',
    outcome: 'seated',
    lobby_id: seat.lobby.lobby_id,
    game_mode: 'default',
    region_id: idOfName('local'),
  })
  const { index } = page
  page.socket.close()
  await failureOf(game.join(UNKNOWN_ID))
  const again = openPage(platform, game, index)
  t.after(() => again.socket.close())
  const [refused] = await until('the refusal is shown', () => again.finds.length > 0 && again.finds)
  assert.ok(!again.kinds.includes('snapshot'))
  assert.deepEqual([refused!.outcome, refused!.code], ['refused', 'MATCHMAKER_LOBBY_NOT_FOUND'])
  assert.equal(again.finds.length, 1, 'a request of another game is not shown')

  const { game_id, namespace_id } = game
  const params = { game_id, namespace_id }
  const listed = await platform.client.call(getAnalyticsMatchmakerFinds, { params })
  assert.deepEqual(listed.finds, [found, refused])
  assert.equal(listed.watch.index, again.index)
  const wrong = await failureOf(
    platform.client.call(getAnalyticsMatchmakerFinds, { params, query: { watch_index: '1.x' } }),
  )
  assert.deepEqual([wrong.code, JSON.stringify(wrong.metadata).includes('watch_index')], ['VALIDATION_ERROR', true])
})

test('a reader that is slower than the requests receives the newest, and how many are missing', () => {
  const finds = new LiveFinds()
  const findOf = (seq: number): LiveFind => ({
    ray_id: String(seq),
    create_ts: '',
    duration: 1,
    operation: 'lobbies.find',
    outcome: 'seated',
  })
  for (let seq = 1; seq <= 1_000; seq++) finds.add({ seq: seq * 10, find: findOf(seq) })
  const message = finds.since(100)
  assert.ok(message.kind === 'finds')
  assert.deepEqual([message.finds.length, message.left_out_count], [FINDS_MAX, 900 - FINDS_MAX])
  assert.equal(message.finds.at(-1)?.ray_id, '1000')
  const next = finds.since(998)
  assert.deepEqual(next.kind === 'finds' && [next.finds.map(({ ray_id }) => ray_id), next.left_out_count], [
    ['999', '1000'],
    0,
  ])
  assert.equal(finds.totalAt(9_990), 999)
  assert.equal(finds.totalAt(10), null, 'the list does not reach back')
  assert.equal(finds.totalAt(10_001), null, 'an index of the future')
})
