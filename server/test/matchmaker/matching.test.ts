// Matches by rules, through the platform: what find returns to those who wait, who may say attributes, and what the lobby's
// server and developers learn.
import assert from 'node:assert/strict'
import { on } from 'node:events'
import { type TestContext, test } from 'node:test'
import {
  createParty,
  explainRay,
  findLobby,
  getAnalytics,
  joinParty,
  leaveParty,
  listWaitingRequests,
  playerConnected,
  setLobbyReady,
  setupIdentity,
  watchEvents,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { WebSocket } from 'ws'
import { withKey } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { startGameEndpoint } from './game-endpoint.ts'
import { MANY, SETTINGS } from './verified-games.ts'

const DUEL = {
  teams: [
    { name: 'red', min: 1, max: 1 },
    { name: 'blue', min: 1, max: 1 },
  ],
  attributes: { skill: { from: 'player' as const } },
  rules: [{ near: 'skill', within: 100, widen: { every_s: 1, by: 50, to: 200 } }],
}
const PLAYER_SAYS = { skill: { from: 'player' as const }, map: { from: 'player' as const } }
const skilled = (skill: number) => ({ attributes: { skill } })

test('two players who fit get one lobby, each a team, and its server learns which', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: { default: { matching: DUEL } } }, limits: MANY })
  const first = game.find(skilled(1_000))
  await until('the first to wait', async () => (await waitingIn(platform)) === 1)
  const seats = await Promise.all([first, game.find(skilled(1_080))])
  assert.equal(seats[0].lobby.lobby_id, seats[1].lobby.lobby_id)
  assert.deepEqual(seats.map(({ team }) => team).sort(), ['blue', 'red'])
  const server = platform.serverOf(game, seats[0].lobby.lobby_id)
  const body = { player_token: seats[0].player.token }
  assert.deepEqual(await server.call(playerConnected, { body }), { team: seats[0].team, ...skilled(1_000) })
})

test('a limit that widens makes a match without another request', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: { default: { matching: DUEL } } }, limits: MANY })
  const seats = await Promise.all([game.find(skilled(0)), game.find(skilled(140))])
  assert.equal(seats[0].lobby.lobby_id, seats[1].lobby.lobby_id)
  const now_ms = platform.ctx.now()
  const [query_start, query_end] = [now_ms - 60_000, now_ms + 60_000].map((ms) => new Date(ms).toISOString())
  const { game_id, namespace_id } = game
  const window = { query_start: query_start!, query_end: query_end! }
  const query = { ...window, game_ids: [game_id], namespace_ids: [namespace_id], variants: ['match_wait' as const] }
  await until('analytics to count both waits, of a second each', async () => {
    const { match_wait } = (await platform.client.call(getAnalytics, { query })).data_sets[0]!
    const { request_count, wait_p50 } = match_wait!
    // A step of the counts is a fifth wide.
    assert.ok(wait_p50.every((ms) => ms >= 800))
    return request_count.reduce((sum, one) => sum + one, 0) === 2
  })
})

test('a wait without a match says what is missing, keeps its place, and is explained', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: { default: { matching: DUEL } } }, limits: MANY })
  const far = game.find({ ...skilled(9_000), wait_ms: 10_000 })
  await until('the first to wait', async () => (await waitingIn(platform)) === 1)
  const wait = () => game.find({ ...skilled(0), wait_ms: 100 }, withKey('again'))
  const failure = await failureOf(wait())
  assert.equal(failure.code, 'MATCHMAKER_WAITING')
  const { waited_ms, refused_by, ...metadata } = failure.metadata as Record<string, unknown>
  assert.ok(Number(waited_ms) >= 100)
  const [refusal] = refused_by as { rule: string; candidates: number; widens_in_ms: number }[]
  assert.deepEqual([refusal?.rule, refusal?.candidates], ['near skill', 1])
  assert.deepEqual(metadata, { reason: 'waiting', players_waiting: 2, players_missing: 1 })
  const { explanation } = await platform.client.call(explainRay, { params: { ray_id: failure.ray_id! } })
  assert.equal(explanation.attempts[0]?.outcome, 'waiting')
  assert.equal(explanation.match_wait?.players_missing, 1)
  // Between its calls the request is matched, and the next call gets the seat.
  const [other, again] = await Promise.all([game.find(skilled(50)), wait()])
  assert.equal(other.lobby.lobby_id, again.lobby.lobby_id)
  assert.equal((await failureOf(far)).code, 'MATCHMAKER_WAITING')
  for (const skill of [0, 1_000]) await Promise.all([game.find(skilled(skill)), game.find(skilled(skill))])
  const { usual_wait_ms } = (await failureOf(game.find({ ...skilled(0), wait_ms: 0 }))).metadata
  assert.equal(typeof usual_wait_ms, 'number')
})

test('a page may say only what the version lets it say, and the game says the rest', async (t) => {
  const endpoint = await startGameEndpoint(t)
  const platform = await startPlatform(t, { env: SETTINGS })
  platform.playServers()
  const verification_config = { url: endpoint.url, headers: {} }
  const game = await platform.game({
    matchmaker: {
      game_modes: {
        default: {
          matching: { size: { min: 2, max: 2 }, rules: [{ near: 'skill', within: 10 }] },
          actions: { find: { enabled: true, verification_config } },
        },
      },
    },
  })
  assert.deepEqual(detailsOf(await failureOf(game.find(skilled(0)))), [[['attributes', 'skill'], 'not_allowed']])
  assert.deepEqual(detailsOf(await failureOf(game.find({ attributes: { level: 1 } }))), [
    [['attributes', 'level'], 'not_found'],
  ])
  const answers = [{ skill: 0 }, { skill: 500 }, { skill: 5 }]
  endpoint.answer((res) => void res.end(JSON.stringify({ attributes: answers.shift() })))
  const low = game.find({}, withKey('low'))
  const high = game.find({ wait_ms: 2_000 })
  await until('both to wait', async () => answers.length === 1)
  const near = await game.find()
  assert.equal((await low).lobby.lobby_id, near.lobby.lobby_id)
  assert.equal((await failureOf(high)).code, 'MATCHMAKER_WAITING')

  endpoint.answer((res) => void res.end(JSON.stringify({ attributes: { unknown: 1 } })))
  assert.equal((await failureOf(game.find())).code, 'MATCHMAKER_VERIFICATION_REQUEST_FAILED')
  endpoint.answer((res) => void res.writeHead(403).end())
  assert.equal((await failureOf(game.find())).code, 'MATCHMAKER_VERIFICATION_FAILED')
})

test('a rule over ratings counts what the platform has stored, and a new player as an average one', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const matching = {
    size: { min: 2, max: 2 },
    attributes: { skill: { from: 'rating' as const } },
    rules: [{ near: 'skill', within: 5 }],
  }
  const game = await platform.game({ matchmaker: { game_modes: { default: { matching } } }, limits: MANY })
  const [strong, other] = [await guestOf(platform, game), await guestOf(platform, game)]
  for (const { identity_id } of [strong, other]) await storeRating(platform, game.namespace_id, identity_id, 40)
  const first = strong.find({ wait_ms: 20_000 })
  await until('the first to wait', async () => (await waitingIn(platform)) === 1)
  assert.equal((await failureOf(game.find({ wait_ms: 0 }))).code, 'MATCHMAKER_WAITING')
  const seats = await Promise.all([first, other.find()])
  assert.equal(seats[0].lobby.lobby_id, seats[1].lobby.lobby_id)
  const own = await failureOf(game.find({ attributes: { skill: 40 } }))
  assert.deepEqual(detailsOf(own), [[['attributes', 'skill'], 'not_allowed']])
})

test('who waits, and what is refused', async (t) => {
  const platform = await startPlatform(t)
  await t.test(
    'attributes without rules are refused, and so is a request that names other game modes as well',
    async () => {
      const game = await platform.game({ matchmaker: { game_modes: { default: { matching: DUEL }, plain: {} } } })
      const both = await failureOf(game.find({ game_modes: ['plain', 'default'] }))
      assert.deepEqual(detailsOf(both), [[['game_modes'], 'conflicts']])
      const plain = await failureOf(game.find({ game_modes: ['plain'], ...skilled(1) }))
      assert.deepEqual(detailsOf(plain), [[['attributes'], 'not_allowed']])
    },
  )

  await t.test(
    'developers see who waits for what now: numbers by game mode, and the oldest requests with what refuses others',
    async () => {
      const matching = { ...DUEL, rules: [...DUEL.rules, { same: 'map' }], attributes: PLAYER_SAYS }
      const game = await platform.game({
        matchmaker: { game_modes: { default: { matching }, other: { matching: DUEL }, plain: {} } },
        limits: MANY,
      })
      const params = { game_id: game.game_id, namespace_id: game.namespace_id }
      const waiting = (query: object = {}) => platform.client.call(listWaitingRequests, { params, query })
      const none = { requests: 0, players: 0, away_requests: 0, players_min: 2, players_max: 2 }
      assert.deepEqual(await waiting(), {
        game_modes: ['default', 'other'].map((game_mode) => ({ game_mode, ...none })),
        requests: [],
      })
      const ends = new AbortController()
      const options = { signal: ends.signal }
      const first = assert.rejects(game.find({ attributes: { skill: 9_000, map: 'bay' } }, options))
      await until('the first to wait', async () => (await waitingIn(platform)) === 1)
      const second = assert.rejects(game.find(skilled(0), options))
      await until('both to wait', async () => (await waitingIn(platform)) === 2)
      const { game_modes, requests } = await waiting()
      const { oldest_wait_ms, ...numbers } = game_modes[0]!
      assert.deepEqual(numbers, { game_mode: 'default', ...none, requests: 2, players: 2 })
      assert.ok(oldest_wait_ms! >= requests[0]!.waited_ms - 1_000)
      const skills = requests.map(({ values }) => values.find(({ rule }) => rule === 'near skill')?.value)
      assert.deepEqual(skills, [9_000, 0])
      const [{ create_ts, player_id, waited_ms, refused_by, ...oldest }] = requests as [(typeof requests)[number]]
      assert.deepEqual(
        refused_by.map(({ rule, candidates }) => [rule, candidates]),
        [['near skill', 1]],
      )
      assert.deepEqual(oldest, {
        ...{ game_mode: 'default', player_count: 1, players_waiting: 2, players_missing: 1, candidates: 0 },
        values: [
          { rule: 'near skill', value: 9_000 },
          { rule: 'same map', value: 'bay' },
        ],
        regions: ['local'],
      })
      assert.equal((await waiting({ limit: 1 })).requests[0]!.player_id, player_id)
      assert.deepEqual((await waiting({ game_mode: 'other' })).requests, [])
      const of_other = { params: { ...params, namespace_id: (await platform.game()).namespace_id } }
      assert.equal((await failureOf(platform.client.call(listWaitingRequests, of_other))).code, 'NAMESPACE_NOT_FOUND')
      ends.abort()
      await Promise.all([first, second])
      await until('both to be away', async () => (await waiting()).game_modes[0]!.requests === 0)
    },
  )
})

test('a stream that asks shows the caller and its party what a find waits for, that the lobby starts, and the end', async (t) => {
  const platform = await startPlatform(t)
  const rules = [{ near: 'skill', within: 100, widen: { every_s: 300, by: 900, to: 1_000 } }]
  const matching = { size: { min: 3, max: 3 }, attributes: { skill: { from: 'player' as const } }, rules }
  const game = await platform.game({ matchmaker: { game_modes: { default: { matching } } }, limits: MANY })
  const [leader, member] = [await guestOf(platform, game), await guestOf(platform, game)]
  const { party } = await leader.player.call(createParty, {})
  await member.player.call(joinParty, { body: { code: party.code } })
  const streams = [socketOf(t, platform, leader.token), pollOf(member.player)]
  // The numbers of a loaded machine may change once more in between.
  const both = (isMeant: (event: EventKind) => unknown = () => true) =>
    Promise.all(
      streams.map(async (next) => {
        for (;;) {
          const event = await next()
          if (isMeant(event)) return event
        }
      }),
    )
  const bothEnd = () => both((event) => event.matchmaker_wait_ended)
  const eventFor = (count: number, more: object) => ({
    matchmaker_waiting: { reason: 'waiting', players_waiting: count, players_missing: 1, ...more },
  })

  const found = leader.find({ party: true, ...skilled(0) })
  for (const event of await both()) assert.deepEqual(event, eventFor(2, { refused_by: [] }))
  const far = await failureOf(game.find({ ...skilled(900), wait_ms: 0 }, withKey()))
  assert.equal(far.code, 'MATCHMAKER_WAITING')
  for (const event of await both()) {
    const { widens_in_ms } = event.matchmaker_waiting!.refused_by![0]!
    assert.ok(Number(widens_in_ms) > 0)
    const refused_by = [{ rule: 'near skill', candidates: 1, limit: 100, widens_in_ms }]
    assert.deepEqual(event, eventFor(3, { refused_by }))
  }
  const third = game.find(skilled(50))
  const [starting, ...others] = await both((event) => event.matchmaker_waiting?.lobby_id)
  const { lobby_id } = starting!.matchmaker_waiting!
  assert.ok(lobby_id !== undefined)
  for (const event of [starting, ...others]) {
    assert.deepEqual(event, { matchmaker_waiting: { reason: 'starting', lobby_id } })
  }
  const plain = await member.player.call(watchEvents, {})
  assert.deepEqual(plain.events, [])
  await platform.serverOf(game, lobby_id).call(setLobbyReady, {})
  await Promise.all([found, third])
  for (const event of await both()) assert.equal(event.matchmaker_lobby_join?.lobby.lobby_id, lobby_id)
  for (const event of await bothEnd()) assert.deepEqual(event, { matchmaker_wait_ended: { reason: 'ready', lobby_id } })

  const again = failureOf(leader.find({ party: true, ...skilled(5_000) }))
  for (const event of await both()) assert.equal(event.matchmaker_waiting?.players_missing, 1)
  await member.player.call(leaveParty, {})
  for (const event of await bothEnd()) assert.deepEqual(event, { matchmaker_wait_ended: { reason: 'party_changed' } })
  assert.equal((await again).code, 'MATCHMAKER_WAITING')
})

type EventKind = {
  matchmaker_waiting?: {
    reason: string
    players_missing?: number
    lobby_id?: string
    waited_ms?: number
    refused_by?: { rule: string; widens_in_ms?: number }[]
  }
  matchmaker_wait_ended?: object
  matchmaker_lobby_join?: { lobby: { lobby_id: string } }
}

/** The next event, without the time that the request has waited. */
function eventsFrom(more: () => Promise<{ kind: EventKind }[]>): () => Promise<EventKind> {
  const told: EventKind[] = []
  return async () => {
    while (told.length === 0) told.push(...(await more()).map(({ kind }) => kind))
    const event = told.shift()!
    delete event.matchmaker_waiting?.waited_ms
    return event
  }
}

function pollOf(player: Client): () => Promise<EventKind> {
  let index: { watch_index?: string } = {}
  return eventsFrom(async () => {
    const { events, watch } = await player.call(watchEvents, { query: { ...index, waiting_every_s: 1 } })
    index = { watch_index: watch.index }
    return events
  })
}

function socketOf(t: TestContext, platform: Platform, token: string): () => Promise<EventKind> {
  const address = `${platform.matchmaker_url.replace('http', 'ws')}${watchEvents.path}`
  const socket = new WebSocket(`${address}?identity_token=${encodeURIComponent(token)}&waiting_every_s=1`)
  t.after(() => socket.terminate())
  const messages = on(socket, 'message')
  return eventsFrom(async () => JSON.parse(String((await messages.next()).value?.[0])).events)
}

async function guestOf(platform: Platform, game: TestGame) {
  const { identity_token, identity } = await game.player.call(setupIdentity, { body: {} })
  const player = platform.as(identity_token)
  const find = (body: object = {}) => player.call(findLobby, { body: { game_modes: ['default'], ...body } })
  return { identity_id: identity.identity_id, player, token: identity_token, find }
}

async function storeRating(platform: Platform, namespace_id: string, identity_id: string, mu: number): Promise<void> {
  const text = 'insert into ratings values ($1, $2, $3, $4, 8, 1, now())'
  await platform.ctx.pool.query(text, [namespace_id, 'default', identity_id, mu])
}

async function waitingIn(platform: Platform): Promise<number> {
  return (await platform.ctx.pool.query('select from tickets where end_ts is null')).rows.length
}

type Detail = { path: string[]; reason: string }

function detailsOf({ code, metadata }: { code: string; metadata: unknown }): [string[], string][] {
  assert.equal(code, 'VALIDATION_ERROR')
  return (metadata as { errors: Detail[] }).errors.map(({ path, reason }) => [path, reason])
}
