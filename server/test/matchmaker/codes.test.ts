// Every code of the matchmaker, produced as a client meets it: over HTTP. The table has a row for each, which the compiler
// holds; a code that nobody can be answered does not belong into the contract.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createParty,
  type ErrorCode,
  joinParty,
  playerConnected,
  playerDisconnected,
  setMatchmakerVersionDraining,
  setupIdentity,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import {
  closeRegion,
  create,
  deployUnchecked,
  endRun,
  failureOf,
  find,
  type GameModes,
  join,
  LONG_MS,
  MODES,
  ready,
  type Seat,
  serverOf,
  stallRun,
  starting,
  stopReasonOf,
  tooManyTags,
  UNKNOWN_ID,
} from '../http/steps.ts'
import { type GameOptions, type Platform, startPlatform, type TestGame } from '../support/platform.ts'
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
  const seat = await startedFor(platform, game, find(game))
  return { game, seat, server: serverOf(platform, game, seat.lobby.lobby_id) }
}

async function startedFor(platform: Platform, game: TestGame, asked: Promise<Seat>): Promise<Seat> {
  const [lobby_id] = await starting(platform, game)
  await ready(platform, game, lobby_id!)
  return asked
}

const connect = (server: Client, { player }: Seat) =>
  server.call(playerConnected, { body: { player_token: player.token } })
const disconnect = (server: Client, { player }: Seat) =>
  server.call(playerDisconnected, { body: { player_token: player.token } })

const CASES: Record<MatchmakerCode, Case> = {
  MATCHMAKER_NO_GAME_MODE_PROVIDED: ({ game }) => find(game, { game_modes: [] }),
  MATCHMAKER_GAME_MODE_NOT_FOUND: ({ game }) => find(game, { game_modes: ['nothing'] }),
  MATCHMAKER_REGION_NOT_FOUND: ({ game }) => find(game, { regions: ['mars'] }),
  MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE: ({ game }) => create(game, { game_mode: 'nowhere', region: 'local' }),
  MATCHMAKER_REGION_FULL: async ({ ownGame }) => find(await ownGame()),
  MATCHMAKER_NO_PORTS: async ({ ownGame }) => find(await ownGame({ docker: { ports: { raw: { protocol: 'tcp' } } } })),
  MATCHMAKER_FIND_DISABLED: ({ game }) => find(game, { game_modes: ['unfindable'] }),
  MATCHMAKER_JOIN_DISABLED: async ({ platform, ownGame }) => {
    const game = await ownGame({ matchmaker: { game_modes: MODES } })
    const { lobby } = await startedFor(platform, game, find(game, { game_modes: ['unjoinable'] }))
    return join(game, lobby.lobby_id)
  },
  MATCHMAKER_CUSTOM_LOBBIES_DISABLED: ({ game }) => create(game, { game_mode: 'default' }),
  MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID: ({ game }) => create(game, { game_mode: 'secret', publicity: 'public' }),
  MATCHMAKER_CUSTOM_LOBBY_LIMIT_REACHED: async (world) => {
    const game = await guestOf(world, await world.ownGame({ matchmaker: { game_modes: ONE_SEAT } }))
    await startedFor(world.platform, game, create(game))
    return create(game)
  },
  MATCHMAKER_IDENTITY_REQUIRED: async ({ ownGame }) =>
    find(await ownGame({ matchmaker: { game_modes: asking('guest') } })),
  MATCHMAKER_REGISTRATION_REQUIRED: async (world) => {
    const game = await world.ownGame()
    await deployUnchecked(world.platform, game, asking('registered'))
    return find(await guestOf(world, game))
  },
  MATCHMAKER_PARTY_TOO_LARGE: async (world) => {
    const game = await world.ownGame({ matchmaker: { game_modes: { default: { max_players: 1 } } } })
    const [leader, other] = [await guestOf(world, game), await guestOf(world, game)]
    const { party } = await leader.player.call(createParty, {})
    await other.player.call(joinParty, { body: { code: party.code } })
    return find(leader, { party: true })
  },
  MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED: ({ game }) => find(game, { max_players: 4 }),
  MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID: ({ game }) => find(game, { game_modes: ['sized'], max_players: 9 }),
  MATCHMAKER_TAGS_DISABLED: ({ game }) => find(game, { tags: { a: 'b' } }),
  MATCHMAKER_TOO_MANY_TAGS: ({ game }) => find(game, { game_modes: ['tagged'], tags: tooManyTags() }),
  MATCHMAKER_TAG_NAME_TOO_LONG: ({ game }) => find(game, { game_modes: ['tagged'], tags: { ['x'.repeat(129)]: 'x' } }),
  MATCHMAKER_TAG_TOO_LONG: ({ game }) => find(game, { game_modes: ['tagged'], tags: { a: 'x'.repeat(513) } }),
  MATCHMAKER_NO_AVAILABLE_LOBBIES: ({ game }) => find(game, { prevent_auto_create_lobby: true }),
  MATCHMAKER_AUTO_CREATE_FAILED: ({ game }) => find(game, { game_modes: ['nowhere'] }),
  MATCHMAKER_VERSION_DRAINING: async ({ platform, ownGame }) => {
    const game = await ownGame()
    const { game_id, namespace_id, version_id } = game
    const params = { game_id, namespace_id, version_id }
    await platform.client.call(setMatchmakerVersionDraining, { params, body: { is_draining: true } })
    return find(game)
  },
  MATCHMAKER_TOO_MANY_LOBBIES: async ({ ownGame }) => find(await ownGame({ limits: { lobby_count_max: 0 } })),
  MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: async ({ ownGame }) =>
    find(await ownGame({ limits: { max_players_per_client: 0 } })),
  MATCHMAKER_VERIFICATION_FAILED: async ({ ownGame, no_url }) =>
    find(await ownGame({ matchmaker: { game_modes: verified(no_url) } })),
  MATCHMAKER_VERIFICATION_REQUEST_FAILED: async ({ ownGame, gone_url }) =>
    find(await ownGame({ matchmaker: { game_modes: verified(gone_url) } })),
  MATCHMAKER_LOBBY_NOT_FOUND: ({ game }) => join(game, UNKNOWN_ID),
  MATCHMAKER_LOBBY_FULL: async (world) => {
    const { game, seat } = await seated(world)
    return join(game, seat.lobby.lobby_id)
  },
  MATCHMAKER_LOBBY_CLOSED: async (world) => {
    const { game, seat } = await seated(world)
    await stallRun(world.platform, seat.lobby.lobby_id)
    return join(game, seat.lobby.lobby_id)
  },
  MATCHMAKER_LOBBY_STOPPED: async (world) => {
    const { game, seat } = await seated(world)
    const { lobby_id } = seat.lobby
    await endRun(world.platform, lobby_id)
    await stopReasonOf(world.platform, lobby_id)
    return join(game, lobby_id)
  },
  MATCHMAKER_LOBBY_NOT_STARTED: async ({ platform, ownGame }) => {
    const game = await ownGame({ limits: { lobby_count_max: 1 } })
    const asked = find(game)
    asked.catch(() => {})
    await starting(platform, game)
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
    await closeRegion(platform, game)
    return { platform, game, ownGame: (options) => platform.game(options), no_url: no.url, gone_url: gone.url }
  }
  const world = await worldOf(await startPlatform(t, { env: SETTINGS }))
  const full = await worldOf(await startPlatform(t, { env: FULL }))
  for (const [code, ask] of Object.entries(CASES)) {
    const error = await failureOf(ask(code === 'MATCHMAKER_REGION_FULL' ? full : world))
    assert.equal(error.code, code, error.message)
  }
})
