// Every code of the matchmaker, produced as a client meets it: over HTTP. The table has a row for each, which the compiler
// holds; a code that nobody can be answered does not belong into the contract.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createParty,
  type ErrorCode,
  joinLobby,
  joinParty,
  playerConnected,
  playerDisconnected,
  setMatchmakerVersionDraining,
  setupIdentity,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { LONG_MS, MODES, tooManyTags, UNKNOWN_ID } from '../http/steps.ts'
import { type GameOptions, type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import type { GameModes, Seat } from '../support/platform-verbs.ts'
import { failureOf } from '../support/refusal.ts'
import { startGameEndpoint } from './game-endpoint.ts'

type MatchmakerCode = Extract<ErrorCode, `MATCHMAKER_${string}`>
/** Asks for what is to be refused. */
type Case = (world: World) => Promise<unknown>
type World = {
  platform: Platform
  /** With nothing but MODES and more; a test that changes it makes a game of its own. */
  game: TestGame
  ownGame: (options?: GameOptions) => Promise<TestGame>
  /** Addresses of endpoints that verify: one says no, at the other nobody answers. */
  no_url: string
  gone_url: string
}

const ONE_SEAT: GameModes = {
  default: {
    idle_grace_ms: LONG_MS,
    max_players: 1,
    actions: {
      create: { enabled: true, enable_public: true, identity_requirement: 'guest', max_lobbies_per_identity: 1 },
    },
  },
}

const verified = (url: string): GameModes => ({
  default: { actions: { find: { enabled: true, verification_config: { url, headers: {} } } } },
})
const asking = <R extends string>(identity_requirement: R) => ({
  default: { actions: { find: { enabled: true, identity_requirement } } },
})

async function guestOf({ platform }: World, game: TestGame): Promise<TestGame> {
  const { identity_token } = await game.player.call(setupIdentity, { body: {} })
  return { ...game, player: platform.as(identity_token) }
}

/** A seat in a lobby that is ready, and the client of its server. */
async function seated({ platform, ownGame }: World): Promise<{ game: TestGame; seat: Seat; server: Client }> {
  const game = await ownGame({ matchmaker: { game_modes: ONE_SEAT } })
  const seat = await startedFor(platform, game, game.find())
  return { game, seat, server: platform.serverOf(game, seat.lobby.lobby_id) }
}

async function startedFor(platform: Platform, game: TestGame, asked: Promise<Seat>): Promise<Seat> {
  const [lobby_id] = await platform.startingLobbies(game)
  await platform.makeReady(game, lobby_id!)
  return asked
}

const connect = (server: Client, { player }: Seat) =>
  server.call(playerConnected, { body: { player_token: player.token } })
const disconnect = (server: Client, { player }: Seat) =>
  server.call(playerDisconnected, { body: { player_token: player.token } })

const CASES: Record<MatchmakerCode, Case> = {
  MATCHMAKER_NO_GAME_MODE_PROVIDED: ({ game }) => game.find({ game_modes: [] }),
  MATCHMAKER_GAME_MODE_NOT_FOUND: ({ game }) => game.find({ game_modes: ['nothing'] }),
  MATCHMAKER_REGION_NOT_FOUND: ({ game }) => game.find({ regions: ['mars'] }),
  MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE: ({ game }) => game.create({ game_mode: 'nowhere', region: 'local' }),
  MATCHMAKER_REGION_FULL: async ({ ownGame }) => (await ownGame()).find(),
  MATCHMAKER_NO_PORTS: async ({ ownGame }) =>
    (await ownGame({ docker: { ports: { raw: { protocol: 'tcp' } } } })).find(),
  MATCHMAKER_FIND_DISABLED: ({ game }) => game.find({ game_modes: ['unfindable'] }),
  MATCHMAKER_JOIN_DISABLED: async ({ platform, ownGame }) => {
    const game = await ownGame({ matchmaker: { game_modes: MODES } })
    const { lobby } = await startedFor(platform, game, game.find({ game_modes: ['unjoinable'] }))
    return game.join(lobby.lobby_id)
  },
  MATCHMAKER_SPECTATORS_DISABLED: ({ game }) => game.find({ role: 'spectator' }),
  MATCHMAKER_CUSTOM_LOBBIES_DISABLED: ({ game }) => game.create({ game_mode: 'default' }),
  MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID: ({ game }) => game.create({ game_mode: 'secret', publicity: 'public' }),
  MATCHMAKER_CUSTOM_LOBBY_LIMIT_REACHED: async (world) => {
    const game = await guestOf(world, await world.ownGame({ matchmaker: { game_modes: ONE_SEAT } }))
    await startedFor(world.platform, game, game.create())
    return game.create()
  },
  MATCHMAKER_IDENTITY_REQUIRED: async ({ ownGame }) =>
    (await ownGame({ matchmaker: { game_modes: asking('guest') } })).find(),
  MATCHMAKER_REGISTRATION_REQUIRED: async (world) => {
    const game = await world.ownGame()
    await world.platform.deployUnchecked(game, asking('registered'))
    return (await guestOf(world, game)).find()
  },
  MATCHMAKER_PARTY_TOO_LARGE: async (world) => {
    const game = await world.ownGame({ matchmaker: { game_modes: { default: { max_players: 1 } } } })
    const [leader, other] = [await guestOf(world, game), await guestOf(world, game)]
    const { party } = await leader.player.call(createParty, {})
    await other.player.call(joinParty, { body: { code: party.code } })
    return leader.find({ party: true })
  },
  MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED: ({ game }) => game.find({ max_players: 4 }),
  MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID: ({ game }) => game.find({ game_modes: ['sized'], max_players: 9 }),
  MATCHMAKER_TAGS_DISABLED: ({ game }) => game.find({ tags: { a: 'b' } }),
  MATCHMAKER_TOO_MANY_TAGS: ({ game }) => game.find({ game_modes: ['tagged'], tags: tooManyTags() }),
  MATCHMAKER_TAG_NAME_TOO_LONG: ({ game }) => game.find({ game_modes: ['tagged'], tags: { ['x'.repeat(129)]: 'x' } }),
  MATCHMAKER_TAG_TOO_LONG: ({ game }) => game.find({ game_modes: ['tagged'], tags: { a: 'x'.repeat(513) } }),
  MATCHMAKER_WAITING: async ({ ownGame }) =>
    (await ownGame({ matchmaker: { game_modes: { default: { matching: { size: { min: 2, max: 2 } } } } } })).find({
      wait_ms: 0,
    }),
  MATCHMAKER_NO_AVAILABLE_LOBBIES: ({ game }) => game.find({ prevent_auto_create_lobby: true }),
  MATCHMAKER_AUTO_CREATE_FAILED: ({ game }) => game.find({ game_modes: ['nowhere'] }),
  MATCHMAKER_VERSION_DRAINING: async ({ platform, ownGame }) => {
    const game = await ownGame()
    const { game_id, namespace_id, version_id } = game
    const params = { game_id, namespace_id, version_id }
    await platform.client.call(setMatchmakerVersionDraining, { params, body: { is_draining: true } })
    return game.find()
  },
  MATCHMAKER_VERSION_REPLACED: ({ game }) => game.find({ version_id: UNKNOWN_ID }),
  MATCHMAKER_TOO_MANY_LOBBIES: async ({ ownGame }) => (await ownGame({ limits: { lobby_count_max: 0 } })).find(),
  MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: async ({ ownGame }) =>
    (await ownGame({ limits: { max_players_per_client: 0 } })).find(),
  MATCHMAKER_VERIFICATION_FAILED: async ({ ownGame, no_url }) =>
    (await ownGame({ matchmaker: { game_modes: verified(no_url) } })).find(),
  MATCHMAKER_VERIFICATION_REQUEST_FAILED: async ({ ownGame, gone_url }) =>
    (await ownGame({ matchmaker: { game_modes: verified(gone_url) } })).find(),
  MATCHMAKER_LOBBY_NOT_FOUND: ({ game }) => game.join(UNKNOWN_ID),
  MATCHMAKER_LOBBY_CODE_INVALID: ({ game }) => game.player.call(joinLobby, { body: { code: 'BCDFGH' } }),
  MATCHMAKER_LOBBY_FULL: async (world) => {
    const { game, seat } = await seated(world)
    return game.join(seat.lobby.lobby_id)
  },
  MATCHMAKER_LOBBY_CLOSED: async (world) => {
    const { game, seat } = await seated(world)
    await world.platform.stallRun(seat.lobby.lobby_id)
    return game.join(seat.lobby.lobby_id)
  },
  MATCHMAKER_LOBBY_STOPPED: async (world) => {
    const { game, seat } = await seated(world)
    const { lobby_id } = seat.lobby
    await world.platform.endRun(lobby_id)
    await world.platform.stopReasonOf(lobby_id)
    return game.join(lobby_id)
  },
  MATCHMAKER_LOBBY_NOT_STARTED: async ({ platform, ownGame }) => {
    const game = await ownGame({ limits: { lobby_count_max: 1 } })
    const asked = game.find()
    asked.catch(() => {})
    await platform.startingLobbies(game)
    platform.advance(51_000)
    return asked
  },
  MATCHMAKER_PLAYER_ALREADY_CONNECTED: async (world) => {
    const { seat, server } = await seated(world)
    await connect(server, seat)
    return connect(server, seat)
  },
  MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY: async (world) => {
    const [{ seat }, { server }] = [await seated(world), await seated(world)]
    return connect(server, seat)
  },
  MATCHMAKER_PLAYER_REGISTRATION_EXPIRED: async (world) => {
    const { seat, server } = await seated(world)
    world.platform.advance(121_000)
    return connect(server, seat)
  },
  MATCHMAKER_PLAYER_REMOVED: async (world) => {
    const { seat, server } = await seated(world)
    await disconnect(server, seat)
    return connect(server, seat)
  },
}

const SETTINGS = { MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8' }
/** No lobby fits. */
const FULL = { MUSTER_CAPACITY_MEMORY_MB: '1' }

test('every code of the matchmaker is answered to somebody', async (t) => {
  const [no, gone] = [await startGameEndpoint(t), await startGameEndpoint(t)]
  no.answer((res) => res.writeHead(403).end())
  gone.answer((res) => res.destroy())
  const worldOf = async (platform: Platform): Promise<World> => {
    const game = await platform.game({ matchmaker: { game_modes: MODES } })
    await platform.closeRegion(game)
    return { platform, game, ownGame: (options) => platform.game(options), no_url: no.url, gone_url: gone.url }
  }
  const world = await worldOf(await startPlatform(t, { env: SETTINGS }))
  const full = await worldOf(await startPlatform(t, { env: FULL }))
  for (const [code, ask] of Object.entries(CASES)) {
    const error = await failureOf(ask(code === 'MATCHMAKER_REGION_FULL' ? full : world))
    assert.equal(error.code, code, error.message)
  }
})
