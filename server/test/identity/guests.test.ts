import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createLobby,
  findLobby,
  getSelfProfile,
  joinLobby,
  listLobbies,
  setupIdentity,
  updateProfile,
  validateProfile,
} from '@musterhost/contract'
import { LONG_MS } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'

const DAY_MS = 24 * 60 * 60_000
const GUESTS = { idle_grace_ms: LONG_MS, max_players: 8 }
const MODES = {
  open: GUESTS,
  guests: {
    ...GUESTS,
    actions: {
      find: { enabled: true, identity_requirement: 'guest' as const },
      join: { enabled: true, identity_requirement: 'guest' as const },
      create: {
        enabled: true,
        enable_public: true,
        identity_requirement: 'guest' as const,
        max_lobbies_per_identity: 2,
      },
    },
  },
}
/** The form of versions of earlier releases. */
const MEMBERS = {
  ...GUESTS,
  actions: {
    find: { enabled: true, identity_requirement: 'registered' },
    create: { enabled: true, enable_public: true, identity_requirement: 'registered' },
  },
}

const setUp = (game: TestGame, existing_identity_token?: string) =>
  game.player.call(setupIdentity, { body: existing_identity_token === undefined ? {} : { existing_identity_token } })

async function identities({ ctx }: Platform, { namespace_id }: TestGame): Promise<number> {
  const rows = await ctx.db
    .selectFrom('identities')
    .select('identity_id')
    .where('namespace_id', '=', namespace_id)
    .execute()
  return rows.length
}

test('a guest is found by the token of its device, unless the token is too old or invalid', async (t) => {
  const platform = await startPlatform(t)
  const [game, other] = [await platform.game(), await platform.game()]
  const first = await setUp(game)
  assert.match(first.identity_token, /^game_user\./)
  assert.equal(first.game_id, game.game_id)
  assert.equal(first.identity.display_name, 'Guest')
  assert.equal(first.identity.is_registered, false)
  assert.ok(first.identity.account_number! >= 1 && first.identity.account_number! <= 9_999)

  assert.deepEqual(await setUp(game, first.identity_token), first)
  // The guest's own token as the credential has the same effect.
  const player = platform.as(first.identity_token)
  assert.deepEqual((await player.call(setupIdentity, { body: {} })).identity, first.identity)
  assert.deepEqual((await player.call(getSelfProfile, {})).identity, first.identity)
  assert.equal(await identities(platform, game), 1)

  // After 30 days the same guest gets another token.
  platform.advance(31 * DAY_MS)
  const later = await setUp(game, first.identity_token)
  assert.deepEqual(later.identity, first.identity)
  assert.notEqual(later.identity_token, first.identity_token)
  assert.ok(later.identity_token_expire_ts > first.identity_token_expire_ts)
  const { seen_ts } = await platform.ctx.db.selectFrom('identities').select('seen_ts').executeTakeFirstOrThrow()
  assert.ok(Math.abs(platform.ctx.now() - seen_ts.getTime()) < 60_000)

  const strangers = [
    (await setUp(other)).identity_token,
    game.public_token,
    'nonsense',
    `${later.identity_token.slice(0, -4)}AAAA`,
  ]
  for (const token of strangers) {
    const { identity } = await setUp(game, token)
    assert.notEqual(identity.identity_id, first.identity.identity_id)
  }
  platform.advance(181 * DAY_MS)
  assert.notEqual((await setUp(game, later.identity_token)).identity.identity_id, first.identity.identity_id)
})

test('a guest changes its name, and has the members that known clients require', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const [own, other] = [await setUp(game), await setUp(game)]
  const player = platform.as(own.identity_token)
  const { identity_id, account_number, join_ts, ...rest } = (await player.call(getSelfProfile, {})).identity
  assert.deepEqual(
    [identity_id, account_number, join_ts],
    [own.identity.identity_id, own.identity.account_number, own.identity.join_ts],
  )
  const { avatar_url, external, ...constant } = rest
  assert.deepEqual(constant, {
    display_name: 'Guest',
    is_registered: false,
    is_admin: false,
    bio: '',
    linked_accounts: [],
    groups: [],
    games: [],
    follower_count: 0,
    following_count: 0,
    following: false,
    is_following_me: false,
    is_mutual_following: false,
  })
  assert.equal(new URL(external.profile).origin, new URL(avatar_url).origin)
  const avatar = await fetch(`${platform.api_url}${new URL(avatar_url).pathname}`)
  assert.equal(avatar.headers.get('content-type'), 'image/svg+xml')
  assert.equal(avatar.headers.get('cross-origin-resource-policy'), 'cross-origin', 'pages of games show it')

  await player.call(updateProfile, { body: { display_name: 'Ada' } })
  assert.equal((await player.call(getSelfProfile, {})).identity.display_name, 'Ada')
  assert.equal((await setUp(game, own.identity_token)).identity.display_name, 'Ada')
  assert.equal((await setUp(game, other.identity_token)).identity.display_name, 'Guest', 'nobody else is renamed')
  for (const display_name of ['', 'x'.repeat(25), ' ', 'a\u202eb']) {
    await platform.refuses('VALIDATION_ERROR', () => player.call(updateProfile, { body: { display_name } }))
  }
  assert.equal((await player.call(validateProfile, { body: { display_name: 'x'.repeat(25) } })).errors.length, 1)
  assert.equal((await player.call(getSelfProfile, {})).identity.display_name, 'Ada')

  await platform.ctx.db.deleteFrom('identities').where('identity_id', '=', identity_id).execute()
  await platform.refuses('IDENTITY_NOT_FOUND', () => player.call(updateProfile, { body: { display_name: 'Bob' } }))
})

test('the token of an identity is valid for its namespace', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const [game, other] = [await platform.game(), await platform.game()]
  const player = platform.as((await setUp(game)).identity_token)
  const seat = await player.call(findLobby, { body: { game_modes: ['default'] } })
  assert.deepEqual(
    (await player.call(listLobbies, {})).lobbies.map(({ lobby_id }) => lobby_id),
    [seat.lobby.lobby_id],
  )
  const stranger = platform.as((await setUp(other)).identity_token)
  await platform.refuses('MATCHMAKER_LOBBY_NOT_FOUND', () =>
    stranger.call(joinLobby, { body: { lobby_id: seat.lobby.lobby_id } }),
  )
})

test('a game mode that requires an identity refuses players without one; the strictest requested mode decides', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  await platform.deployUnchecked(game, { members: MEMBERS })
  const guest = platform.as((await setUp(game)).identity_token)
  const find = (client: typeof guest, ...game_modes: string[]) => client.call(findLobby, { body: { game_modes } })

  await platform.refuses('MATCHMAKER_IDENTITY_REQUIRED', () => find(game.player, 'guests'))
  await platform.refuses('MATCHMAKER_IDENTITY_REQUIRED', () => find(game.player, 'open', 'guests'))
  await platform.refuses('MATCHMAKER_IDENTITY_REQUIRED', () => find(game.player, 'members'))
  await platform.refuses('MATCHMAKER_REGISTRATION_REQUIRED', () => find(guest, 'members'))
  await platform.refuses('MATCHMAKER_REGISTRATION_REQUIRED', () => find(guest, 'guests', 'members'))
  const { lobby } = await find(guest, 'guests')
  const { lobby_id } = lobby
  await platform.refuses('MATCHMAKER_IDENTITY_REQUIRED', () => game.player.call(joinLobby, { body: { lobby_id } }))
  await guest.call(joinLobby, { body: { lobby_id } })
  const create = (client: typeof guest, game_mode: string) => client.call(createLobby, { body: { game_mode } })
  await platform.refuses('MATCHMAKER_IDENTITY_REQUIRED', () => create(game.player, 'guests'))
  await platform.refuses('MATCHMAKER_REGISTRATION_REQUIRED', () => create(guest, 'members'))
  await find(game.player, 'open')
})

test('one identity has at most its number of custom lobbies under concurrent requests', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const limits = { max_players_per_client: 1_000 }
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits })
  const create = async (token: string) => platform.as(token).call(createLobby, { body: { game_mode: 'guests' } })
  const [one, another] = [(await setUp(game)).identity_token, (await setUp(game)).identity_token]
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => create(one)))
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 2)
  await platform.refuses('MATCHMAKER_CUSTOM_LOBBY_LIMIT_REACHED', () => create(one))
  await create(another)
})
