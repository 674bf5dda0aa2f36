import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import {
  createLobby,
  createParty,
  findLobby as find,
  type findLobby,
  getParty,
  joinLobby,
  joinParty,
  leaveParty,
  playerConnected,
  type ResponseOf,
  removePartyMember,
  setPartyLeader,
  setupIdentity,
  watchEvents,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { idOfName } from '../../src/ids.ts'
import { from, LONG_MS, TRUSTING, withKey } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import type { GameModes } from '../support/platform-verbs.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { startGameEndpoint } from './game-endpoint.ts'

type Member = { identity_id: string; client: Client; headers: Record<string, string> }
type Seat = ResponseOf<typeof findLobby>

const CUSTOM = { create: { enabled: true, enable_public: true } }
const MODES: GameModes = {
  default: { idle_grace_ms: LONG_MS, max_players: 8, actions: CUSTOM },
  small: { idle_grace_ms: LONG_MS, max_players: 3, actions: CUSTOM },
  wide: { idle_grace_ms: LONG_MS, max_players: 2, max_players_party: 5 },
}
const WISH = { game_modes: ['default'] }

async function memberOf(platform: Platform, game: TestGame, number: number): Promise<Member> {
  const { identity, identity_token } = await game.player.call(setupIdentity, { body: {} })
  const { headers } = from(`192.0.2.${number}`)
  return { identity_id: identity.identity_id, client: platform.as(identity_token), headers }
}

/** The first leads. Each comes from a separate address. */
async function partyOf(platform: Platform, game: TestGame, size: number, first = 1): Promise<Member[]> {
  const members: Member[] = []
  for (let number = 0; number < size; number++) members.push(await memberOf(platform, game, first + number))
  const [leader, ...others] = members as [Member, ...Member[]]
  const { party } = await leader.client.call(createParty, { headers: leader.headers })
  for (const { client, headers } of others) await client.call(joinParty, { body: { code: party.code }, headers })
  return members
}

/** What a member receives, once there is something. */
async function toldTo({ client }: Member, watch_index?: string) {
  const { events, watch } = await client.call(watchEvents, watch_index === undefined ? {} : { query: { watch_index } })
  const seats = events.flatMap(({ event_id, kind }) => {
    assert.ok(kind.matchmaker_lobby_join)
    return [{ event_id, seat: kind.matchmaker_lobby_join }]
  })
  return { seats, index: watch.index }
}

async function world(t: TestContext, limits = { max_players_per_client: 100 }) {
  const platform = await startPlatform(t, { env: TRUSTING })
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits })
  return { platform, game }
}

test('a party is made, joined by its code, led by another, and left', async (t) => {
  const { platform, game } = await world(t)
  const other_game = await platform.game()
  const [ada, grace, joan] = [
    await memberOf(platform, game, 1),
    await memberOf(platform, game, 2),
    await memberOf(platform, game, 3),
  ]
  const stranger = await memberOf(platform, other_game, 4)
  await platform.refuses('PARTY_NOT_FOUND', () => ada.client.call(getParty, {}))
  const { party } = await ada.client.call(createParty, {})
  assert.match(party.code, /^[A-Z2-9]{8}$/)
  assert.deepEqual(await ada.client.call(createParty, {}), { party }, 'asked again, it is the same')

  await platform.refuses('PARTY_CODE_INVALID', () => grace.client.call(joinParty, { body: { code: 'AAAAAAAA' } }))
  await platform.refuses('PARTY_CODE_INVALID', () => stranger.client.call(joinParty, { body: { code: party.code } }))
  const watch = await ada.client.call(getParty, {})
  const told = ada.client.call(getParty, { query: { watch_index: watch.watch.index } })
  // As a player types a code that they heard.
  await grace.client.call(joinParty, { body: { code: ` ${party.code.toLowerCase()}` } })
  assert.equal((await told).party.members.length, 2)
  const joined = await joan.client.call(joinParty, { body: { code: party.code } })
  const ids = [ada, grace, joan].map(({ identity_id }) => identity_id)
  assert.deepEqual(
    joined.party.members.map(({ identity_id }) => identity_id),
    ids,
  )
  assert.equal(joined.party.leader_identity_id, ada.identity_id)

  for (const by of [grace, joan]) {
    const body = { identity_id: by.identity_id }
    await platform.refuses('PARTY_LEADER_REQUIRED', () => by.client.call(setPartyLeader, { body }))
    const params = { identity_id: ada.identity_id }
    await platform.refuses('PARTY_LEADER_REQUIRED', () => by.client.call(removePartyMember, { params }))
    await platform.refuses('PARTY_LEADER_REQUIRED', () => by.client.call(find, { body: { ...WISH, party: true } }))
  }
  const to_stranger = { body: { identity_id: stranger.identity_id } }
  await platform.refuses('PARTY_MEMBER_NOT_FOUND', () => ada.client.call(setPartyLeader, to_stranger))
  const led = await ada.client.call(setPartyLeader, { body: { identity_id: grace.identity_id } })
  assert.equal(led.party.leader_identity_id, grace.identity_id)

  // A member who was removed does not come back with the old code.
  const before = await joan.client.call(getParty, {})
  const joan_told = failureOf(joan.client.call(getParty, { query: { watch_index: before.watch.index } }))
  const without = await grace.client.call(removePartyMember, { params: { identity_id: joan.identity_id } })
  assert.equal((await joan_told).code, 'PARTY_NOT_FOUND')
  assert.notEqual(without.party.code, party.code)
  await platform.refuses('PARTY_CODE_INVALID', () => joan.client.call(joinParty, { body: { code: party.code } }))

  await joan.client.call(createParty, {})
  await platform.refuses('PARTY_ALREADY_MEMBER', () =>
    joan.client.call(joinParty, { body: { code: without.party.code } }),
  )
  await grace.client.call(leaveParty, {})
  assert.equal((await ada.client.call(getParty, {})).party.leader_identity_id, ada.identity_id)
  await ada.client.call(leaveParty, {})
  await ada.client.call(leaveParty, {})
  await platform.refuses('PARTY_NOT_FOUND', () => ada.client.call(getParty, {}))
})

test('a party has 32 members at most, and a member is never in two of them', async (t) => {
  const { platform, game } = await world(t)
  const [leader, ...others] = await partyOf(platform, game, 32)
  const { party } = await leader!.client.call(getParty, {})
  assert.equal(party.members.length, 32)
  const late = await memberOf(platform, game, 99)
  await platform.refuses('PARTY_FULL', () => late.client.call(joinParty, { body: { code: party.code } }))
  await platform.refuses('PARTY_ALREADY_MEMBER', () => others[0]!.client.call(createParty, {}))
  platform.advance(24 * 60 * 60_000)
  assert.equal((await failureOf(leader!.client.call(getParty, {}))).code, 'PARTY_NOT_FOUND')
})

test('each member receives an own seat in the one lobby, once it is ready', async (t) => {
  const { platform, game } = await world(t)
  const members = await partyOf(platform, game, 4)
  const [leader] = members
  const starts = await Promise.all(members.map((member) => toldTo(member)))
  assert.ok(starts.every(({ seats }) => seats.length === 0))
  const waiting = members.map((member, number) => toldTo(member, starts[number]!.index))
  const found = leader!.client.call(find, { body: { ...WISH, party: true }, headers: leader!.headers })
  const [lobby_id] = (await platform.startingLobbies(game)) as [string]
  // A seat in a lobby that is not ready is not told of.
  for (const member of members) assert.equal((await toldTo(member)).seats.length, 0)
  await platform.makeReady(game, lobby_id)
  const answer = await found
  const told = await Promise.all(waiting)
  const seats = told.map(({ seats: [only, ...more] }) => {
    assert.equal(more.length, 0)
    assert.equal(only?.event_id, platform.playerIdOf(only!.seat))
    return only!.seat
  })
  assert.deepEqual(seats[0], answer, "the leader's event is the leader's answer")
  assert.equal(new Set(seats.map(({ lobby }) => lobby.lobby_id)).size, 1)
  assert.equal(new Set(seats.map(({ player }) => player.token)).size, 4)

  // It is reported again until an index from behind it is shown, and is no longer open once its token is used.
  assert.deepEqual((await toldTo(members[1]!)).seats, told[1]!.seats)
  assert.deepEqual((await toldTo(members[1]!, starts[1]!.index)).seats, told[1]!.seats)
  const server = platform.serverOf(game, lobby_id)
  for (const { player } of seats) await server.call(playerConnected, { body: { player_token: player.token } })
  assert.equal((await toldTo(members[1]!)).seats.length, 0)
  assert.deepEqual((await toldTo(members[1]!, starts[1]!.index)).seats, told[1]!.seats)

  // Nothing more: the wait has an end, and the index stays what it was.
  const moving = setInterval(() => platform.advance(41_000), 100)
  t.after(() => clearInterval(moving))
  assert.deepEqual(await toldTo(members[2]!, told[2]!.index), { seats: [], index: told[2]!.index })
  const error = await failureOf(members[2]!.client.call(watchEvents, { query: { watch_index: 'yesterday' } }))
  assert.equal(error.code, 'VALIDATION_ERROR')
})

test('of a party of five with four places free nobody gets a seat; where there is room all do', async (t) => {
  const { platform, game } = await world(t)
  platform.playServers()
  const seated = await partyOf(platform, game, 4, 50)
  const { lobby } = await seated[0]!.client.call(find, { body: { ...WISH, party: true } })
  const { lobby_id } = lobby
  const [five, also_five] = [await partyOf(platform, game, 5, 10), await partyOf(platform, game, 5, 20)]
  const [one, two] = [five[0]!.client, also_five[0]!.client]
  await platform.refuses('MATCHMAKER_NO_AVAILABLE_LOBBIES', () =>
    one.call(find, { body: { ...WISH, party: true, prevent_auto_create_lobby: true } }),
  )
  await platform.refuses('MATCHMAKER_LOBBY_FULL', () => one.call(joinLobby, { body: { lobby_id, party: true } }))
  for (const member of five) assert.equal((await toldTo(member)).seats.length, 0)
  const elsewhere = await one.call(find, { body: { ...WISH, party: true } })
  assert.notEqual(elsewhere.lobby.lobby_id, lobby_id)
  // Three places are left in that one, four in the first: the fullest that takes them all.
  const three = await partyOf(platform, game, 3, 30)
  const third = await three[0]!.client.call(find, { body: { ...WISH, party: true } })
  assert.equal(third.lobby.lobby_id, elsewhere.lobby.lobby_id)
  // Two parties run for the last four places.
  const [four, also_four] = [await partyOf(platform, game, 4, 60), await partyOf(platform, game, 4, 70)]
  const outcomes = await Promise.allSettled(
    [four, also_four].map(([leader]) => leader!.client.call(joinLobby, { body: { lobby_id, party: true } })),
  )
  assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  const told = await Promise.all([...four, ...also_four].map((member) => toldTo(member)))
  assert.equal(told.filter(({ seats }) => seats.length === 1).length, 4)
  await platform.refuses('MATCHMAKER_LOBBY_FULL', () => two.call(joinLobby, { body: { lobby_id, party: true } }))
  const created = await two.call(createLobby, { body: { game_mode: 'default', party: true } })
  assert.deepEqual((await toldTo(also_five[4]!)).seats[0]!.seat.lobby.lobby_id, created.lobby.lobby_id)
})

test('max_players_party bounds all players of a lobby when a party enters', async (t) => {
  const { platform, game } = await world(t)
  platform.playServers()
  const wide = { game_modes: ['wide'], party: true }
  const [two, three, six] = [
    await partyOf(platform, game, 2, 10),
    await partyOf(platform, game, 3, 20),
    await partyOf(platform, game, 6, 30),
  ]
  const first = await two[0]!.client.call(find, { body: wide })
  // For one player alone it is full.
  const body = { game_modes: ['wide'], prevent_auto_create_lobby: true }
  await platform.refuses('MATCHMAKER_NO_AVAILABLE_LOBBIES', () => game.player.call(find, { body }))
  const second = await three[0]!.client.call(find, { body: wide })
  assert.equal(second.lobby.lobby_id, first.lobby.lobby_id)
  await platform.refuses('MATCHMAKER_PARTY_TOO_LARGE', () => six[0]!.client.call(find, { body: wide }))
})

test('limits count every member by the address from which they joined', async (t) => {
  const { platform, game } = await world(t, { max_players_per_client: 1 })
  platform.playServers()
  const [leader, other] = (await partyOf(platform, game, 3)) as [Member, Member, Member]
  const { party } = await leader.client.call(getParty, {})
  const ask = () => leader.client.call(find, { body: { ...WISH, party: true }, headers: leader.headers })
  // The second member joins again, from the address of the third.
  await other.client.call(joinParty, { body: { code: party.code }, ...from('192.0.2.3') })
  await platform.refuses('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', ask)
  await other.client.call(joinParty, { body: { code: party.code }, ...from('192.0.2.2') })
  await ask()
  await platform.refuses('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', ask)
  await platform.refuses('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () =>
    game.player.call(find, { body: WISH, ...from('192.0.2.3') }),
  )
})

test('a repeated request of the leader is answered the same, and seats nobody twice', async (t) => {
  const { platform, game } = await world(t)
  platform.playServers()
  const members = await partyOf(platform, game, 3)
  const { headers } = withKey(randomUUID())
  const ask = () => members[0]!.client.call(find, { body: { ...WISH, party: true }, headers })
  const answers = await Promise.all([ask(), ask(), ask()])
  const before = await platform.journalEnds()
  assert.deepEqual([answers[1], answers[2], await ask()], [answers[0], answers[0], answers[0]])
  assert.equal(await platform.journalEnds(), before)
  for (const member of members) assert.equal((await toldTo(member)).seats.length, 1)
})

test('a leader who hangs up before the lobby is ready gives all seats back', async (t) => {
  const { platform, game } = await world(t)
  const members = await partyOf(platform, game, 3)
  const hanging = new AbortController()
  const options = { body: { ...WISH, party: true }, signal: hanging.signal }
  const found = members[0]!.client.call(find, options).catch((error: unknown) => error)
  const [lobby_id] = (await platform.startingLobbies(game)) as [string]
  hanging.abort()
  await found
  await until('the seats to be given back', async () => {
    const { ctx } = platform
    const rows = await ctx.db.selectFrom('players').select('remove_reason').where('lobby_id', '=', lobby_id).execute()
    return rows.length === 3 && rows.every(({ remove_reason }) => remove_reason === 'unanswered') && rows
  })
  await platform.makeReady(game, lobby_id)
  for (const member of members) assert.equal((await toldTo(member)).seats.length, 0)
})

test('where the game verifies it is asked once, about all members, and its no is for all of them', async (t) => {
  const endpoint = await startGameEndpoint(t)
  const platform = await startPlatform(t, { env: { ...TRUSTING, MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8' } })
  platform.playServers()
  const verification_config = { url: endpoint.url, headers: {} }
  const actions = { find: { enabled: true, verification_config } }
  const game_modes = { default: { idle_grace_ms: LONG_MS, max_players: 4, actions } }
  const game = await platform.game({ matchmaker: { game_modes }, limits: { max_players_per_client: 1 } })
  const members = await partyOf(platform, game, 3)
  const [leader, second] = members as [Member, Member, Member]
  const ask = () => leader.client.call(find, { body: { ...WISH, party: true }, headers: leader.headers })
  endpoint.answer((res) => res.writeHead(403).end())
  await platform.refuses('MATCHMAKER_VERIFICATION_FAILED', ask)
  endpoint.answer(null)

  // While the game thinks, their places are held: each counts for its own client, and another party has no room.
  const { waiting, say } = endpoint.think()
  const found = ask()
  await until('the question', () => waiting() === 1)
  await platform.refuses('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () =>
    game.player.call(find, { body: WISH, headers: second.headers }),
  )
  say(200)
  await found
  const { payload } = endpoint.asked.at(-1)!
  assert.equal(endpoint.asked.length, 2)
  const unknown = { user_agent: null, latitude: null, longitude: null }
  const { user_agent } = (payload.clients as Record<string, { user_agent: string | null }>)['192.0.2.1']!
  const { game_id, namespace_id } = game
  const of_mode = { namespace_id, game_mode_id: idOfName('default', game_id), game_mode_name_id: 'default' }
  const asked = { state: null, config: null, tags: {}, dynamic_max_players: null }
  assert.deepEqual(payload, {
    verification_data: null,
    game: { ...of_mode, lobby: null, ...asked },
    // Of each member as they joined the party.
    clients: Object.fromEntries(members.map((_, index) => [`192.0.2.${index + 1}`, { ...unknown, user_agent }])),
    join_kind: 'party',
    kind: 'find',
  })
  for (const member of members) assert.equal((await toldTo(member)).seats.length, 1)
  assert.equal(await game.seatsTaken(), 3)

  // A party that is another one when the answer comes is asked about again.
  const others = await partyOf(platform, game, 2, 20)
  const again = endpoint.think()
  const late = others[0]!.client.call(find, { body: { ...WISH, party: true }, headers: others[0]!.headers })
  await until('the question', () => again.waiting() === 1)
  await others[1]!.client.call(leaveParty, {})
  again.say(200)
  await late
  assert.deepEqual(Object.keys(endpoint.asked.at(-1)!.payload.clients), ['192.0.2.20'])
  assert.equal((await toldTo(others[1]!)).seats.length, 0)
})

test('parties, and what their members are to receive, outlive the matchmaker', async (t) => {
  const { platform, game } = await world(t)
  platform.playServers()
  const members = await partyOf(platform, game, 3)
  const [leader] = members
  const starts = await Promise.all(members.map((member) => toldTo(member)))
  const answer = await leader!.client.call(find, { body: { ...WISH, party: true } })
  const { party } = await leader!.client.call(getParty, {})
  const { data_dir, ctx } = platform
  const again = await startPlatform(t, { env: TRUSTING, data_dir, database_url: ctx.config.database_url! })
  // The first one holds the lease until it ends; the second takes over what is in the journal.
  await platform.close()
  const seats: Seat[] = []
  for (const number of members.keys()) {
    const token = await tokenOf(again, game, members[number]!.identity_id)
    const member = { ...members[number]!, client: again.as(token) }
    const told = await untilAnswered(() => toldTo(member, starts[number]!.index))
    seats.push(told.seats[0]!.seat)
  }
  assert.deepEqual(seats[0]!.player, answer.player)
  assert.equal(new Set(seats.map(({ lobby }) => lobby.lobby_id)).size, 1)
  const leader_token = await tokenOf(again, game, leader!.identity_id)
  assert.deepEqual((await again.as(leader_token).call(getParty, {})).party.members, party.members)
})

async function tokenOf({ ctx }: Platform, { namespace_id }: TestGame, identity_id: string): Promise<string> {
  return ctx.keys.issue({ kind: 'game_user', identity_id, namespace_id }, { now_ms: ctx.now(), lifetime_ms: 3_600_000 })
}

/** A matchmaker that stands by says so, until it leads. */
function untilAnswered<T>(call: () => Promise<T>): Promise<T> {
  return until('the matchmaker to lead', () =>
    call().catch((error: { code?: string }) => {
      if (error.code === 'API_NOT_AVAILABLE') return null
      throw error
    }),
  )
}
