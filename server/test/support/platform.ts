// The platform for tests is the platform: the real context on a temporary folder, free ports and a database of its own,
// its roles started in this process and stopped with the test. Fixtures are calls through the typed client.
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import {
  type ApiError,
  type BodyOf,
  createGame,
  createGameNamespaceTokenPublic,
  createGameVersion,
  createGroup,
  getGameById,
  setLobbyReady,
  updateGameNamespaceMatchmakerConfig,
  updateGameNamespaceVersion,
  type VersionConfig,
} from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import type { Context } from '../../src/context.ts'
import { startRoles } from '../../src/main.ts'
import { channelOf } from '../../src/wire/channels.ts'
import { LEAST_SERVER, uploadBuild } from './builds.ts'
import { createClock } from './clock.ts'
import { readTestConfig } from './config.ts'
import { createDatabase } from './database.ts'
import { freePorts } from './free-ports.ts'
import { GAME_VERBS, type GameVerbs } from './game-verbs.ts'
import { PLATFORM_VERBS, type PlatformVerbs } from './platform-verbs.ts'

export type Platform = PlatformVerbs & {
  ctx: Context
  /** Addresses of the roles; those that were not asked for are not listened at. */
  api_url: string
  matchmaker_url: string
  edge_url: string
  data_dir: string
  /** With the operator's own token. */
  client: Client
  token: string
  as: (token: string) => Client
  /** Lets time pass: moves both clocks of the platform. */
  advance: (ms: number) => void
  /** Steps the platform's wall clock, and nothing else. */
  stepWallClock: (ms: number) => void
  /** From now on the clock stands, and only `advance` moves it: what fills up with time does not while a test is slow. */
  holdClock: () => void
  game: (options?: GameOptions) => Promise<TestGame>
  /** What the lobby's server would call itself with. */
  lobbyToken: (lobby: { lobby_id: string; namespace_id: string }) => string
  /** Plays the server of every lobby that starts without a node or on these, until the test ends: it calls ready. */
  playServers: (node_ids?: readonly string[]) => void
  close: () => Promise<void>
}

export type GameOptions = {
  matchmaker?: NonNullable<VersionConfig['matchmaker']>
  /** Members of its docker block beside the build. */
  docker?: Pick<
    NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>,
    | 'network_mode'
    | 'ports'
    | 'env'
    | 'args'
    | 'standard_input'
    | 'files'
    | 'ready'
    | 'seats'
    | 'hold_ms'
    | 'player_addresses'
  >
  /** The files of its build; what runs is server.mjs. */
  files?: Record<string, string>
  limits?: BodyOf<typeof updateGameNamespaceMatchmakerConfig>
}

export type TestGame = GameVerbs & {
  group_id: string
  game_id: string
  name_id: string
  namespace_id: string
  version_id: string
  /** As a player's client is, with the namespace's public token. */
  player: Client
  public_token: string
}

export type PlatformOptions = {
  roles?: string
  /** Settings beside those that make it a test: rate limits are off unless one asks for them. */
  env?: Record<string, string>
  /** Another database or data folder than fresh ones: a second platform beside, or a later life of, another. */
  database_url?: string
  data_dir?: string
  /** The clock stands at this time, and only `advance` moves it. */
  held_ms?: number
  /** Lobbies run in sandboxes where bubblewrap is installed. Without it they run as on a machine that has none. */
  has_sandboxes?: boolean
}

/** Each retry waits 100 ms longer than the one before. */
const REMOVALS_MAX = 10

export async function startPlatform(t: TestContext, options: PlatformOptions = {}): Promise<Platform> {
  const database_url = options.database_url ?? (await createDatabase(t))
  const data_dir = options.data_dir ?? (await mkdtemp(join(tmpdir(), 'muster-test-')))
  await mkdir(data_dir, { recursive: true })
  // Lobbies of a real runner run as other users, who must find their builds.
  await chmod(data_dir, 0o711)
  const [api_port, matchmaker_port, lobby_api_port, edge_port, https_port] = await freePorts(5)
  const { roles = 'api,matchmaker' } = options
  const config = readTestConfig({
    MUSTER_DATA: data_dir,
    DATABASE_URL: database_url,
    MUSTER_ROLES: roles,
    ...(roles.includes('runner') && options.has_sandboxes !== true && { MUSTER_SANDBOX: 'off' }),
    MUSTER_API_PORT: String(api_port),
    MUSTER_MATCHMAKER_PORT: String(matchmaker_port),
    MUSTER_LOBBY_API_PORT: String(lobby_api_port),
    MUSTER_EDGE_HTTP_PORT: String(edge_port),
    MUSTER_EDGE_HTTPS_PORT: String(https_port),
    MUSTER_METRICS_PORT: '0',
    MUSTER_RATE_LIMIT_SEATS: '0',
    MUSTER_RATE_LIMIT_MATCHMAKER: '0',
    MUSTER_RATE_LIMIT_CLOUD: '0',
    MUSTER_RATE_LIMIT_KV: '0',
    MUSTER_CAPACITY_CORES: '0',
    MUSTER_CAPACITY_MEMORY_MB: '0',
    // Nobody answers there: a test asks no name server of this machine.
    MUSTER_DNS_SERVERS: '127.0.0.1:1',
    MUSTER_RATE_LIMIT_LOGIN: '0',
    MUSTER_RATE_LIMIT_GUESTS: '0',
    // Half a second of a core for each platform.
    MUSTER_IP_SEED: 'off',
    MUSTER_LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
    ...options.env,
  })
  const clock = createClock(options.held_ms)
  const running = await startRoles(config, { now: clock.now, elapsed: clock.elapsed })
  const { ctx } = running
  const urls = {
    api_url: `http://127.0.0.1:${api_port}`,
    matchmaker_url: `http://127.0.0.1:${matchmaker_port}`,
    edge_url: `http://127.0.0.1:${edge_port}`,
  }
  const token = ctx.keys.issue({ kind: 'access', name: 'test' }, { now_ms: ctx.now(), lifetime_ms: null })
  const as = (bearer: string): Client => createRoleClient(urls, bearer)
  const endings: (() => void)[] = []

  const platform: Platform = {
    ...PLATFORM_VERBS,
    ctx,
    ...urls,
    data_dir,
    client: as(token),
    token,
    as,
    advance: clock.advance,
    stepWallClock: clock.stepWallClock,
    holdClock: clock.hold,
    game: (wish) => createTestGame(platform, wish),
    lobbyToken: (lobby) =>
      ctx.keys.issue(
        { kind: 'lobby', lobby_id: lobby.lobby_id, namespace_id: lobby.namespace_id },
        { now_ms: ctx.now(), lifetime_ms: null },
      ),
    playServers: (node_ids = []) => endings.push(playServers(platform, node_ids)),
    async close() {
      for (const end of endings.splice(0)) end()
      await running.stop({ end_lobbies: true })
    },
  }
  t.after(async () => {
    await platform.close()
    // A role in a process of its own may still be writing there: its test ends it after this.
    if (options.data_dir === undefined) await rm(data_dir, { recursive: true, force: true, maxRetries: REMOVALS_MAX })
  })
  return platform
}

/** The roles listen at two addresses; the client finds the right one, as the edge would. */
function createRoleClient(urls: Pick<Platform, 'api_url' | 'matchmaker_url'>, token: string): Client {
  const api = createClient({ url: urls.api_url, token })
  const matchmaker = createClient({ url: urls.matchmaker_url, token })
  return {
    call: (operation, input) => (operation.service === 'matchmaker' ? matchmaker : api).call(operation, input),
  }
}

/** On any platform that is there: as a developer would. */
export async function createTestGame(
  platform: Pick<Platform, 'client' | 'api_url' | 'as'>,
  options: GameOptions = {},
): Promise<TestGame> {
  const { client } = platform
  const { group_id } = await client.call(createGroup, { body: { display_name: 'Developers' } })
  const { game_id } = await client.call(createGame, { body: { display_name: 'Game', developer_group_id: group_id } })
  const { game } = await client.call(getGameById, { params: { game_id } })
  const namespace_id = game.namespaces.find((namespace) => namespace.name_id === 'prod')!.namespace_id
  const params = { game_id, namespace_id }
  const files = options.files ?? { 'server.mjs': LEAST_SERVER }
  const image_id = await uploadBuild(client, { api_url: platform.api_url, game_id, files })
  const docker = {
    image_id,
    args: ['node', 'server.mjs'],
    ports: { game: { protocol: 'http' as const } },
    ...options.docker,
  }
  const { version_id } = await client.call(createGameVersion, {
    params: { game_id },
    body: {
      display_name: '1.0.0',
      config: { matchmaker: { docker, game_modes: { default: {} }, ...options.matchmaker }, kv: {} },
    },
  })
  await client.call(updateGameNamespaceVersion, { params, body: { version_id } })
  if (options.limits !== undefined) {
    await client.call(updateGameNamespaceMatchmakerConfig, { params, body: options.limits })
  }
  const { token } = await client.call(createGameNamespaceTokenPublic, { params })
  return {
    ...GAME_VERBS,
    group_id,
    game_id,
    name_id: game.name_id,
    namespace_id,
    version_id,
    player: platform.as(token),
    public_token: token,
  }
}

/** Asked of the table at every wake-up, like a runner of lobbies without a node and of these nodes, and once right now. */
function playServers(platform: Platform, node_ids: readonly string[]): () => void {
  const { ctx } = platform
  const seen = new Set<string>()
  let is_over = false
  const look = async (): Promise<void> => {
    const rows = await ctx.db
      .selectFrom('lobbies')
      .where('stop_ts', 'is', null)
      .where('ready_ts', 'is', null)
      .select(['lobby_id', 'namespace_id'])
      .execute()
    for (const lobby of rows) {
      if (is_over || seen.has(lobby.lobby_id)) continue
      seen.add(lobby.lobby_id)
      await platform
        .as(platform.lobbyToken(lobby))
        .call(setLobbyReady, {})
        .catch((error: ApiError) => {
          if (!is_over && error.code !== 'MATCHMAKER_LOBBY_STOPPED') throw error
        })
    }
  }
  const unsubscribes = [null, ...node_ids].map((node_id) =>
    ctx.listener.on(channelOf('lobbies', node_id), () => void look()),
  )
  void look()
  return () => {
    is_over = true
    for (const unsubscribe of unsubscribes) unsubscribe()
  }
}
