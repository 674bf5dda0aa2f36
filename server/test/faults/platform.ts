// The platform under test: started by `muster start` in its own data folder, with a game in three namespaces.
// `prod` has tight limits, and a game's backend requests its players' seats. `staging` is for parties and deploys. In
// `probes` each find needs a new lobby, so a find there shows that every part of the platform works.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  createCloudToken,
  createGame,
  createGameNamespace,
  createGameNamespaceTokenPublic,
  createGameVersion,
  createGroup,
  getGameById,
  updateGameNamespaceMatchmakerConfig,
  updateGameNamespaceVersion,
  type VersionConfig,
} from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import pg from 'pg'
import { embeddedUrl } from '../../src/database/embedded/embedded.ts'
import { findPrimaryUrl } from '../../src/database/primary.ts'
import { type Keys, openKeys } from '../../src/tokens/keys.ts'
import { clearDataFolder } from '../leftovers/clear.ts'
import { endProcessesOf, freeSettings, type Started, startMuster } from '../supervisor/started.ts'
import { uploadBuild } from '../support/builds.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { GAME_SERVER } from './game-server.ts'

/** Without rate limits and capacity: the load itself is bounded. Nothing that the checks read is removed. */
const SETTINGS = {
  MUSTER_RATE_LIMIT_SEATS: '0',
  MUSTER_RATE_LIMIT_MATCHMAKER: '0',
  MUSTER_RATE_LIMIT_CLOUD: '0',
  MUSTER_RATE_LIMIT_KV: '0',
  MUSTER_CAPACITY_CORES: '0',
  MUSTER_CAPACITY_MEMORY_MB: '0',
  MUSTER_QUOTA_NAMESPACES: '0',
  MUSTER_QUOTA_BUILDS: '0',
  MUSTER_QUOTA_SITES: '0',
  MUSTER_QUOTA_DOMAINS: '0',
  MUSTER_UPLOAD_DISK_FREE_MB_MIN: '0',
  MUSTER_LOBBY_DISK_FREE_MB_MIN: '0',
  MUSTER_RETENTION_JOURNAL_HOURS: '0',
  MUSTER_IP_SEED: 'off',
  // A port without a listener, so that claims of domains ask no name server of this machine.
  MUSTER_DNS_SERVERS: '127.0.0.1:1',
}

/** Of the namespace `prod`: small enough that the load reaches them. */
export const PROD_LIMITS = { lobby_count_max: 8, max_players_per_client: 6 }
/** Of the namespaces that no limit should reach. */
const WIDE_LIMITS = { lobby_count_max: 1_000, max_players_per_client: 100_000 }

const CUSTOM_LOBBIES = { create: { enabled: true, enable_public: true } }
const MODES = {
  prod: { max_players: 8, player_deadline_ms: 15_000, idle_grace_ms: 3_000, actions: CUSTOM_LOBBIES },
  staging: { max_players: 16, player_deadline_ms: 15_000, idle_grace_ms: 3_000 },
  probes: { max_players: 1, player_deadline_ms: 1_000, idle_grace_ms: 0 },
}
export type NamespaceName = keyof typeof MODES

export type Game = {
  group_id: string
  game_id: string
  build_id: string
  namespaces: Record<NamespaceName, string>
  /** The token of the game's backend. */
  cloud_token: string
  /** The token of the game's clients. */
  public_tokens: Record<NamespaceName, string>
}

export type FaultyPlatformOptions = {
  folder: string
  env?: Record<string, string>
  /** Environment of the lobbies. */
  lobby_env?: Record<string, string>
  /** Where players ask for seats, in turn. Default: the edge. */
  find_urls?: readonly string[]
}

export class FaultyPlatform {
  readonly folder: string
  readonly settings: Readonly<Record<string, string>>
  readonly game: Game
  readonly keys: Keys
  readonly admin: Client
  readonly database_url: string
  readonly find_urls: readonly string[]
  #started: Started
  readonly #lobby_env: Record<string, string>

  private constructor(
    parts: Pick<FaultyPlatform, 'folder' | 'settings' | 'game' | 'keys' | 'admin' | 'database_url' | 'find_urls'>,
    started: Started,
    lobby_env: Record<string, string>,
  ) {
    this.folder = parts.folder
    this.settings = parts.settings
    this.game = parts.game
    this.keys = parts.keys
    this.admin = parts.admin
    this.database_url = parts.database_url
    this.find_urls = parts.find_urls
    this.#started = started
    this.#lobby_env = lobby_env
  }

  static async start(options: FaultyPlatformOptions): Promise<FaultyPlatform> {
    const { folder, env = {}, lobby_env = {} } = options
    const settings = { ...(await freeSettings(folder)), ...SETTINGS, ...env }
    if (env.DATABASE_URL === undefined) await placeCluster(folder)
    const started = startMuster(settings)
    await started.ready
    const token = readFileSync(join(folder, 'admin-token'), 'utf8').trim()
    const admin = createClient({ url: edgeUrl(settings), token })
    const game = await createGameOn(admin, edgeUrl(settings), lobby_env)
    const keys = await openKeys(join(folder, 'keys'))
    const database_url = env.DATABASE_URL ?? (await embeddedUrl(folder))
    const find_urls = options.find_urls ?? [edgeUrl(settings)]
    return new FaultyPlatform({ folder, settings, game, keys, admin, database_url, find_urls }, started, lobby_env)
  }

  get started(): Started {
    return this.#started
  }

  get edge_url(): string {
    return edgeUrl(this.settings)
  }

  /** A caller with this token, through the edge. */
  as(token: string): Client {
    return createClient({ url: this.edge_url, token })
  }

  /** The server of a lobby, by the path at which the edge serves it. */
  lobbyServer(path: string): Client {
    return createClient({ url: `${this.edge_url}${path}` })
  }

  /** A version of this namespace's game mode, with another site or build where they are given. */
  versionConfig(name: NamespaceName, wish: { site_id?: string; build_id?: string } = {}): VersionConfig {
    const config = configOf(wish.build_id ?? this.game.build_id, name, this.#lobby_env)
    return wish.site_id === undefined ? config : { ...config, cdn: { site_id: wish.site_id } }
  }

  /** The next `muster start` on the same folder, after the one before has ended. Resolves when it is ready. */
  async startAgain(): Promise<void> {
    await this.#started.ended
    this.#started = startMuster({ ...this.settings })
    await this.#started.ready
  }

  /** Ends everything, lobbies too, as Ctrl-C does. */
  async stop(): Promise<void> {
    this.#started.signalGroup('SIGINT')
    const { code } = await this.#started.ended
    if (code !== 0) throw new Error(`muster start ended with ${code}:\n${this.#started.output()}`)
  }

  /** Kills its remaining processes, and removes what they left outside of the folder, which stays. */
  async close(): Promise<void> {
    await endProcessesOf(this.folder)
    await clearDataFolder(this.folder)
  }

  async withDatabase<T>(work: (db: pg.Client) => Promise<T>): Promise<T> {
    const connectionString = await findPrimaryUrl(this.database_url)
    const db = new pg.Client({ connectionString, application_name: 'faults' })
    db.on('error', () => undefined)
    await db.connect()
    try {
      return await work(db)
    } finally {
      const ended = once(db, 'end')
      await db.end()
      await ended
    }
  }
}

function edgeUrl(settings: Readonly<Record<string, string>>): string {
  return `http://127.0.0.1:${settings.MUSTER_EDGE_HTTP_PORT}`
}

function configOf(build_id: string, name: NamespaceName, env: Record<string, string>): VersionConfig {
  type Ports = Record<string, { protocol: 'http' | 'tcp' }>
  const game = { protocol: 'http' } as const
  // A number of the edge's for each lobby of `prod`, for the law of ports.
  const ports: Ports = name === 'prod' ? { game, raw: { protocol: 'tcp' } } : { game }
  const docker = { image_id: build_id, args: ['node', 'server.mjs'], ports, env }
  return { kv: {}, matchmaker: { docker, game_modes: { default: MODES[name] } } }
}

async function createGameOn(admin: Client, edge_url: string, env: Record<string, string>): Promise<Game> {
  const { group_id } = await admin.call(createGroup, { body: { display_name: 'Faults' } })
  const { game_id } = await admin.call(createGame, { body: { display_name: 'Faults', developer_group_id: group_id } })
  const params = { game_id }
  const build_id = await uploadBuild(admin, { api_url: edge_url, game_id, files: { 'server.mjs': GAME_SERVER } })
  const versions = new Map<NamespaceName, string>()
  for (const name of ['prod', 'staging', 'probes'] as const) {
    const body = { display_name: name, config: configOf(build_id, name, env) }
    versions.set(name, (await admin.call(createGameVersion, { params, body })).version_id)
  }
  const body = { display_name: 'Probes', name_id: 'probes', version_id: versions.get('probes')! }
  await admin.call(createGameNamespace, { params, body })
  const { game } = await admin.call(getGameById, { params })
  const setUp = async (name: NamespaceName): Promise<{ namespace_id: string; public_token: string }> => {
    const { namespace_id } = game.namespaces.find((namespace) => namespace.name_id === name)!
    const path = { params: { game_id, namespace_id } }
    await admin.call(updateGameNamespaceVersion, { ...path, body: { version_id: versions.get(name)! } })
    const limits = name === 'prod' ? PROD_LIMITS : WIDE_LIMITS
    await admin.call(updateGameNamespaceMatchmakerConfig, { ...path, body: limits })
    const { token } = await admin.call(createGameNamespaceTokenPublic, path)
    return { namespace_id, public_token: token }
  }
  const [prod, staging, probes] = [await setUp('prod'), await setUp('staging'), await setUp('probes')]
  const { token: cloud_token } = await admin.call(createCloudToken, { params })
  return {
    group_id,
    game_id,
    build_id,
    cloud_token,
    namespaces: { prod: prod.namespace_id, staging: staging.namespace_id, probes: probes.namespace_id },
    public_tokens: { prod: prod.public_token, staging: staging.public_token, probes: probes.public_token },
  }
}
