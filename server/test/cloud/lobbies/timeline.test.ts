// What happened to a lobby, in the order of time, page by page: with real servers, and from the tables and the journal.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  deleteMatchmakerLobbyPlayer,
  getLobbyTimeline,
  type LobbyTimelineEvent,
  playerConnected,
  setLobbyClosed,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { removeOldJournal } from '../../../src/matchmaker/retention.ts'
import { LONG_MS } from '../../http/steps.ts'
import { personOf } from '../../http/world.ts'
import { type Platform, startPlatform, type TestGame } from '../../support/platform.ts'
import { failureOf } from '../../support/refusal.ts'
import { until } from '../../support/until.ts'
import { talkingGame, talkingLobby } from './talking-server.ts'

const PAGES_MAX = 200
const MODES = { default: { max_players: 3, idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } }

async function timeline(
  client: Client,
  { game_id }: TestGame,
  lobby_id: string,
  limit?: number,
): Promise<LobbyTimelineEvent[]> {
  const events: LobbyTimelineEvent[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const query = { ...(limit === undefined ? {} : { limit }), ...(cursor === undefined ? {} : { cursor }) }
    const page = await client.call(getLobbyTimeline, { params: { game_id, lobby_id }, query })
    assert.ok(page.events.length <= (limit ?? 200))
    events.push(...page.events)
    if (page.next_cursor === undefined) return events
    cursor = page.next_cursor
  }
  throw new Error('The pages do not end.')
}

const kindsOf = (events: readonly LobbyTimelineEvent[]) => events.map(({ kind }) => kind)

async function setStalled({ ctx }: Platform, lobby_id: string, is_stalled: boolean): Promise<void> {
  await ctx.pool.query('update lobby_runs set stall_ts = $2 where lobby_id = $1', [
    lobby_id,
    is_stalled ? new Date() : null,
  ])
  await ctx.listener.notify('lobby_runs', lobby_id)
  await until('the tables to say so', async () => {
    const { rows } = await ctx.pool.query('select from lobbies where lobby_id = $1 and is_stalled = $2', [
      lobby_id,
      is_stalled,
    ])
    return rows.length === 1
  })
}

test('the timeline of a real lobby begins with its request and ends with its exit code', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner' })
  const game = await talkingGame(platform)
  const running = await talkingLobby(platform, game)
  const failed = await talkingLobby(platform, game, { exit_code: 3 })
  const started = await until('the start is in the tables', async () => {
    const events = await timeline(platform.client, game, running)
    const kinds = kindsOf(events)
    return (
      (['requested', 'process_started', 'listening', 'ready'] as const).every((kind) => kinds.includes(kind)) && events
    )
  })
  const kinds = kindsOf(started)
  for (const [before, after] of [
    ['created', 'process_started'],
    ['process_started', 'listening'],
    ['listening', 'ready'],
  ] as const) {
    assert.ok(kinds.indexOf(before) < kinds.indexOf(after), `${before} is before ${after}: ${kinds}`)
  }
  const requested = started.find(({ kind }) => kind === 'requested')!
  assert.equal(requested.operation, 'lobbies.create')
  assert.match(requested.ray_id!, /^[0-9a-f-]{36}$/)

  const ended = await until('the end is in the tables', async () => {
    const events = await timeline(platform.client, game, failed)
    return ['stopped', 'exited'].every((kind) => kindsOf(events).includes(kind as 'stopped')) && events
  })
  const { ts: _, ...exited } = ended.find(({ kind }) => kind === 'exited')!
  assert.deepEqual(exited, { kind: 'exited', reason: 'exit', exit_code: 3 })
  assert.equal(ended.find(({ kind }) => kind === 'stopped')!.reason, 'exited')
  assert.ok(!kindsOf(ended).includes('ready') && !kindsOf(ended).includes('listening'))
})

test('every seat, closing and stall is in the timeline once, on pages of any size, and after a restart', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const { client, ctx } = platform
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const { game_id } = game
  const seat = await game.find()
  const { lobby_id } = seat.lobby
  // Another lobby of the namespace: its events are its own.
  await game.find({ tags: {} })
  const server = platform.serverOf(game, lobby_id)
  await server.call(playerConnected, { body: { player_token: seat.player.token } })
  for (const is_closed of [true, false, true, false]) await server.call(setLobbyClosed, { body: { is_closed } })
  const second = await game.join(lobby_id)
  const player_id = platform.playerIdOf(second)
  await client.call(deleteMatchmakerLobbyPlayer, { params: { game_id, lobby_id, player_id } })
  assert.equal(await platform.removeReasonOf(player_id), 'requested')
  await platform.stallRun(lobby_id)
  await setStalled(platform, lobby_id, false)

  // Later the events of requests would differ from those of now.
  await ctx.recorder.flush()
  const all = await timeline(client, game, lobby_id)
  const counts = Object.fromEntries(
    [...Map.groupBy(all, ({ kind }) => kind)].map(([kind, events]) => [kind, events.length]),
  )
  const { player_reserved, player_connected, player_left, closed, reopened, stalled, responding } = counts
  assert.deepEqual([player_connected, player_left, closed, reopened, stalled, responding], [1, 1, 2, 2, 1, 1])
  assert.ok(player_reserved! >= 2)
  const first = all.find((event) => event.kind === 'player_reserved' && event.player_id === platform.playerIdOf(seat))
  assert.equal(first!.operation, 'lobbies.find')
  assert.equal(all.find(({ kind }) => kind === 'player_left')!.reason, 'requested')
  assert.equal(all.find(({ kind }) => kind === 'player_left')!.player_id, player_id)
  const own = kindsOf(all).filter((kind) => ['closed', 'reopened', 'stalled', 'responding'].includes(kind))
  assert.deepEqual(own, ['closed', 'reopened', 'closed', 'reopened', 'stalled', 'responding'])
  assert.deepEqual(
    all.map(({ ts }) => ts),
    all.map(({ ts }) => ts).toSorted(),
  )
  for (const limit of [1, 2, 3, 500]) assert.deepEqual(await timeline(client, game, lobby_id, limit), all)

  const { database_url, data_dir } = ctx.config
  const later = await startPlatform(t, { roles: 'api', database_url: database_url!, data_dir })
  assert.deepEqual(await timeline(later.client, game, lobby_id), all, 'another process reads the same')

  // What only the journal has ends with it; the tables keep the rest.
  const kept = await until('the old rows of the journal are removed', async () => {
    await ctx.pool.query(`update journal set ts = now() - interval '1 year'`)
    await removeOldJournal(ctx.pool, 1_000)
    const kinds = kindsOf(await timeline(client, game, lobby_id))
    return !kinds.includes('closed') && kinds
  })
  for (const kind of ['created', 'ready', 'player_connected', 'player_left'] as const)
    assert.ok(kept.includes(kind), kind)
})

test('viewers read a timeline, strangers do not, and the cursor and lobby of another game are refused', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const [game, other] = [await platform.game(), await platform.game()]
  const { lobby_id } = (await game.find()).lobby
  await until('the lobby is in the tables', async () => {
    const { rows } = await platform.ctx.pool.query('select from lobbies where lobby_id = $1', [lobby_id])
    return rows.length === 1
  })
  const viewer = platform.as(await personOf(platform, game.group_id, 'viewer'))
  const stranger = platform.as(await personOf(platform, other.group_id, 'owner'))
  assert.ok((await timeline(viewer, game, lobby_id)).length > 0)
  assert.equal((await failureOf(timeline(stranger, game, lobby_id))).code, 'GAME_NOT_FOUND')
  assert.equal((await failureOf(timeline(platform.client, other, lobby_id))).code, 'LOBBY_NOT_FOUND')
  const params = { game_id: game.game_id, lobby_id }
  for (const cursor of ['x', '1.2', '1.100..1', '1.1.x.1']) {
    const refusal = await failureOf(platform.client.call(getLobbyTimeline, { params, query: { cursor } }))
    assert.equal(refusal.code, 'VALIDATION_ERROR')
  }
})
