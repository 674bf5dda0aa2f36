// The version config: what a game developer says about how a version is served, matched and run. Sections that the
// platform does not implement yet are refused by the schema, never ignored.
import Type, { type Static } from 'typebox'
import { CaptchaConfig } from './captcha-config.ts'
import { Id, object } from './records.ts'
import { type SeatAction, type VerificationConfig, verificationMembers } from './verification-config.ts'

/** The names of game modes and regions, which are keys of maps. */
const NAME_PATTERN = '^[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}[A-Za-z0-9_])?$'
const PORT_NAME_PATTERN = '^[a-z0-9]{1,16}$|^(?=.{3,16}$)[a-z0-9]+(-[a-z0-9]+)+$'
const ENV_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_]{0,63}$'

const map = <T extends Parameters<typeof Type.Record>[1]>(
  pattern: string,
  value: T,
  count_max: number,
  description: string,
) =>
  Type.Record(Type.String({ pattern }), value, { additionalProperties: false, maxProperties: count_max, description })

/**
 * What the edge carries: http with WebSockets in it, both over TLS, and raw tcp, over TLS too, and udp. The server itself
 * speaks without TLS.
 */
const PortProtocol = Type.Enum(['http', 'https', 'tcp', 'tcp_tls', 'udp'], { description: 'https when absent.' })
export type PortProtocol = Static<typeof PortProtocol>
/** Of a port that does not say. */
export const PORT_PROTOCOL_DEFAULT: PortProtocol = 'https'

const MaxPlayers = Type.Integer({ minimum: 1, maximum: 256 })

const Tier = Type.String({
  pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
  maxLength: 16,
  description: 'The tier_name_id of a region tier: what a lobby may use.',
})

const IdleLobbies = object(
  {
    min: Type.Integer({ minimum: 0, maximum: 16, description: 'So many are started ahead of players.' }),
    max: Type.Integer({ minimum: 0, maximum: 32, description: 'So many may stay; of more, the oldest are stopped.' }),
  },
  'Lobbies of a game mode in a region that nobody is in. Without it none is started, and none stays.',
)
export type IdleLobbies = Static<typeof IdleLobbies>

/** What a region may override. */
const RegionOverrides = object({ tier: Type.Optional(Tier), idle_lobbies: Type.Optional(IdleLobbies) })

const PortRange = object({
  min: Type.Integer({ minimum: 1, maximum: 65535 }),
  max: Type.Integer({ minimum: 1, maximum: 65535 }),
})
export type PortRange = Static<typeof PortRange>

const Port = object({
  port: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 65535,
      description:
        'Refused: the lobbies of a machine share its network, so each gets a number of its own. Leave it out, and let the server listen on `PORT_<NAME>`.',
    }),
  ),
  port_range: Type.Optional(
    Type.Object(PortRange.properties, {
      additionalProperties: false,
      description:
        "Players reach these tcp or udp ports of the machine with no proxy between. Network mode host only, within the operator's MUSTER_HOST_PORT_RANGES. Lobbies share them: the server takes a free one.",
    }),
  ),
  protocol: Type.Optional(PortProtocol),
  proxy: Type.Optional(
    Type.Enum(['game_guard', 'none'], { description: 'none is for port_range, which has no other; all else has one.' }),
  ),
  proxy_protocol: Type.Optional(
    Type.Boolean({
      description:
        "tcp, tcp_tls and udp: the server is told the player's address by PROXY protocol v2, before a connection's first byte and in front of every datagram.",
    }),
  ),
  require_player_token: Type.Optional(
    Type.Boolean({ description: 'udp: nothing reaches the server from a source that has not shown a player token.' }),
  ),
})

const Docker = object(
  {
    image_id: Type.Optional(Id),
    args: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 512 }), {
        maxItems: 64,
        description: 'The argv of the server.',
      }),
    ),
    env: Type.Optional(
      map(ENV_NAME_PATTERN, Type.String({ maxLength: 512 }), 64, 'Environment beside what the platform sets.'),
    ),
    network_mode: Type.Optional(
      Type.Enum(['bridge', 'host'], { description: 'bridge when absent; host where the operator allows it.' }),
    ),
    ports: Type.Optional(map(PORT_NAME_PATTERN, Port, 16, 'Ports by name. A server finds its own in PORT_<NAME>.')),
  },
  'What a lobby runs. The block keeps its name for every kind of build.',
)

const IdentityRequirement = Type.Enum(['none', 'guest', 'registered'], {
  description:
    "Who may call. `none`, the default: everybody. `guest`: players with an identity's token. `registered` is refused: the platform has no registered players yet.",
})
export type IdentityRequirement = Static<typeof IdentityRequirement>

const FindAction = object({
  enabled: Type.Boolean(),
  identity_requirement: Type.Optional(IdentityRequirement),
  ...verificationMembers,
})
const CreateAction = object({
  enabled: Type.Boolean(),
  identity_requirement: Type.Optional(IdentityRequirement),
  max_lobbies_per_identity: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 32_767, description: 'Custom lobbies of one identity that run at a time.' }),
  ),
  ...verificationMembers,
  enable_public: Type.Optional(
    Type.Boolean({ description: 'Whether lobbies that everybody may find can be created. Default false.' }),
  ),
  enable_private: Type.Optional(
    Type.Boolean({ description: 'Whether lobbies that only their id leads to can be created. Default true.' }),
  ),
})

export const GameMode = object({
  regions: Type.Optional(map(NAME_PATTERN, RegionOverrides, 64, 'Where it runs; absent: everywhere.')),
  max_players: Type.Optional(MaxPlayers),
  max_players_direct: Type.Optional(MaxPlayers),
  max_players_party: Type.Optional(MaxPlayers),
  tier: Type.Optional(Tier),
  idle_lobbies: Type.Optional(IdleLobbies),
  docker: Type.Optional(Docker),
  listable: Type.Optional(Type.Boolean()),
  taggable: Type.Optional(Type.Boolean()),
  allow_dynamic_max_players: Type.Optional(Type.Boolean()),
  idle_grace_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 3_600_000,
      description:
        'A lobby without players is stopped after this. While its server has never called `connected`, open connections count as players.',
    }),
  ),
  ready_deadline_ms: Type.Optional(
    Type.Integer({ minimum: 1_000, maximum: 3_600_000, description: 'A lobby must call ready within this.' }),
  ),
  player_deadline_ms: Type.Optional(
    Type.Integer({ minimum: 1_000, maximum: 3_600_000, description: 'A player must connect within this.' }),
  ),
  actions: Type.Optional(
    object({
      find: Type.Optional(FindAction),
      join: Type.Optional(FindAction),
      create: Type.Optional(CreateAction),
    }),
  ),
})

const CustomHeader = object({
  name: Type.String({ minLength: 1, maxLength: 512 }),
  value: Type.String({ maxLength: 1024 }),
})
const Middleware = object({
  kind: object({ custom_headers: object({ headers: Type.Array(CustomHeader, { maxItems: 32 }) }) }),
})
const CdnRoute = object({
  glob: Type.String({
    minLength: 1,
    maxLength: 256,
    description: 'Which paths: * is anything but a slash, ** anything, **/ any folders, ? one character but a slash.',
  }),
  priority: Type.Integer({
    minimum: 0,
    maximum: 100,
    description: 'Of routes that set the same header the highest decides, of equal ones the first.',
  }),
  middlewares: Type.Array(Middleware, { maxItems: 32 }),
})
/** A glob in the version config, and the headers that it adds to the files of the site. */
export type CdnRoute = Static<typeof CdnRoute>

const NotFound = Type.Enum(['404.html', 'index.html'], {
  description:
    'File of the site that is served at paths it does not have: `404.html` with status 404, or `index.html` with status 200 for a page that reads the path itself. Absent: `404.html` if the site has one, else a page of the platform.',
})
export type NotFound = Static<typeof NotFound>

export const VersionConfig = object({
  kv: Type.Optional(object({}, 'With it the namespaces of the version keep entries.')),
  cdn: Type.Optional(
    object({
      site_id: Type.Optional(Id),
      routes: Type.Optional(Type.Array(CdnRoute, { maxItems: 32, description: 'Headers of files, by path.' })),
      not_found: Type.Optional(NotFound),
    }),
  ),
  matchmaker: Type.Optional(
    object({
      game_modes: map(NAME_PATTERN, GameMode, 32, 'Game modes by name.'),
      regions: Type.Optional(map(NAME_PATTERN, RegionOverrides, 64, 'The default of every game mode.')),
      max_players: Type.Optional(MaxPlayers),
      max_players_direct: Type.Optional(MaxPlayers),
      max_players_party: Type.Optional(MaxPlayers),
      tier: Type.Optional(Tier),
      idle_lobbies: Type.Optional(IdleLobbies),
      docker: Type.Optional(Docker),
      captcha: Type.Optional(CaptchaConfig),
    }),
  ),
})
export type VersionConfig = Static<typeof VersionConfig>

export type PortConfig = {
  name: string
  protocol: PortProtocol
  port_range: PortRange | null
  proxy_protocol: boolean
  require_player_token: boolean
}

/** A game mode with every default filled in. */
export type GameModeConfig = {
  name: string
  /** Null: every region of the platform. */
  regions: readonly string[] | null
  /** Of the regions that say one. */
  region_tiers: Readonly<Record<string, string>>
  /** Of all other regions; null: each region's own default. */
  tier: string | null
  /** Of the regions that say so, and of all others. */
  region_idle_lobbies: Readonly<Record<string, IdleLobbies>>
  idle_lobbies: IdleLobbies
  max_players_normal: number
  max_players_direct: number
  max_players_party: number
  image_id: string | null
  args: readonly string[]
  env: Readonly<Record<string, string>>
  network_mode: 'bridge' | 'host'
  ports: readonly PortConfig[]
  listable: boolean
  taggable: boolean
  allow_dynamic_max_players: boolean
  find_enabled: boolean
  join_enabled: boolean
  create: { enable_public: boolean; enable_private: boolean; max_lobbies_per_identity: number | null } | null
  identity_requirement: Readonly<Record<SeatAction, IdentityRequirement>>
  /** Whose endpoint is asked before this action gives a seat; null: nobody's. */
  verification: Readonly<Record<SeatAction, VerificationConfig | null>>
  idle_grace_ms: number
  ready_deadline_ms: number
  player_deadline_ms: number
}

const MAX_PLAYERS_DEFAULT = 32
const IDLE_GRACE_MS_DEFAULT = 15_000
const READY_DEADLINE_MS_DEFAULT = 5 * 60_000
const PLAYER_DEADLINE_MS_DEFAULT = 2 * 60_000

/**
 * The game modes of a version, each with what it inherits: its own value, else the matchmaker's, else the platform's
 * default. Of `docker` the env is merged name by name, everything else is taken from the mode's block when it has one.
 */
export function gameModesOf(config: VersionConfig): Map<string, GameModeConfig> {
  const modes = new Map<string, GameModeConfig>()
  const shared = config.matchmaker
  if (shared === undefined) return modes
  for (const [name, mode] of Object.entries(shared.game_modes)) {
    const docker = mode.docker ?? shared.docker
    const regions = mode.regions ?? shared.regions
    const max_players = mode.max_players ?? shared.max_players ?? MAX_PLAYERS_DEFAULT
    const create = mode.actions?.create
    modes.set(name, {
      name,
      regions: regions === undefined ? null : Object.keys(regions),
      region_tiers: Object.fromEntries(
        Object.entries(regions ?? {}).flatMap(([region, { tier }]) => (tier === undefined ? [] : [[region, tier]])),
      ),
      tier: mode.tier ?? shared.tier ?? null,
      region_idle_lobbies: Object.fromEntries(
        Object.entries(regions ?? {}).flatMap(([region, { idle_lobbies }]) =>
          idle_lobbies === undefined ? [] : [[region, idle_lobbies]],
        ),
      ),
      idle_lobbies: mode.idle_lobbies ?? shared.idle_lobbies ?? { min: 0, max: 0 },
      max_players_normal: max_players,
      max_players_direct: mode.max_players_direct ?? shared.max_players_direct ?? max_players,
      max_players_party: mode.max_players_party ?? shared.max_players_party ?? max_players,
      image_id: docker?.image_id ?? null,
      args: docker?.args ?? [],
      env: { ...shared.docker?.env, ...mode.docker?.env },
      network_mode: docker?.network_mode ?? 'bridge',
      ports: Object.entries(docker?.ports ?? {}).map(([port_name, port]) => ({
        name: port_name,
        protocol: port.protocol ?? PORT_PROTOCOL_DEFAULT,
        port_range: port.port_range ?? null,
        proxy_protocol: port.proxy_protocol ?? false,
        require_player_token: port.require_player_token ?? false,
      })),
      listable: mode.listable ?? true,
      taggable: mode.taggable ?? false,
      allow_dynamic_max_players: mode.allow_dynamic_max_players ?? false,
      find_enabled: mode.actions?.find?.enabled ?? true,
      join_enabled: mode.actions?.join?.enabled ?? true,
      create: create?.enabled
        ? {
            enable_public: create.enable_public ?? false,
            enable_private: create.enable_private ?? true,
            max_lobbies_per_identity: create.max_lobbies_per_identity ?? null,
          }
        : null,
      identity_requirement: {
        find: mode.actions?.find?.identity_requirement ?? 'none',
        join: mode.actions?.join?.identity_requirement ?? 'none',
        create: create?.identity_requirement ?? 'none',
      },
      verification: {
        find: verificationOf(mode.actions?.find),
        join: verificationOf(mode.actions?.join),
        create: verificationOf(mode.actions?.create),
      },
      idle_grace_ms: mode.idle_grace_ms ?? IDLE_GRACE_MS_DEFAULT,
      ready_deadline_ms: mode.ready_deadline_ms ?? READY_DEADLINE_MS_DEFAULT,
      player_deadline_ms: mode.player_deadline_ms ?? PLAYER_DEADLINE_MS_DEFAULT,
    })
  }
  return modes
}

type VerifiedAction = { verification_config?: VerificationConfig; verification?: VerificationConfig }

function verificationOf(action: VerifiedAction | undefined): VerificationConfig | null {
  return action?.verification_config ?? action?.verification ?? null
}

/** The tier of a game mode's lobbies in a region; null: the region's default. */
export function tierIn(mode: Pick<GameModeConfig, 'region_tiers' | 'tier'>, region: string): string | null {
  return Object.hasOwn(mode.region_tiers, region) ? mode.region_tiers[region]! : mode.tier
}

/** How many lobbies of a game mode wait for players in a region. */
export function idleLobbiesIn(
  mode: Pick<GameModeConfig, 'region_idle_lobbies' | 'idle_lobbies'>,
  region: string,
): IdleLobbies {
  return Object.hasOwn(mode.region_idle_lobbies, region) ? mode.region_idle_lobbies[region]! : mode.idle_lobbies
}
