// The version config: how a version of a game is served, matched and run. The schema refuses sections that the platform does
// not implement.
import Type, { type Static } from 'typebox'
import { admissionMembers, seatsMembers } from './admission-config.ts'
import { CaptchaConfig } from './captcha-config.ts'
import { ENV_NAME_PATTERN } from './env-names.ts'
import { FilesConfig } from './files-config.ts'
import { Id, SiteId } from './ids.ts'
import { imageMembers } from './image-config.ts'
import { MatchingConfig } from './matching-config.ts'
import { protocolMembers } from './protocol-config.ts'
import { ReadyConfig } from './ready-config.ts'
import { described, object } from './records.ts'
import { verificationMembers } from './verification-config.ts'

/** The names of game modes and regions, which are keys of maps. */
const NAME_PATTERN = '^[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}[A-Za-z0-9_])?$'
const PORT_NAME_PATTERN = '^[a-z0-9]{1,16}$|^(?=.{3,16}$)[a-z0-9]+(-[a-z0-9]+)+$'

const map = <T extends Parameters<typeof Type.Record>[1]>(
  pattern: string,
  value: T,
  count_max: number,
  description: string,
) =>
  Type.Record(Type.String({ pattern }), value, { additionalProperties: false, maxProperties: count_max, description })

/** Protocols that the edge forwards. `http` includes WebSocket. The server itself never uses TLS. */
const PortProtocol = Type.Enum(['http', 'https', 'tcp', 'tcp_tls', 'udp'], {
  description:
    'Protocol that players use. `http` and `https` include WebSocket; `https` and `tcp_tls` end TLS at the platform. Default `https`.',
})
export type PortProtocol = Static<typeof PortProtocol>
/** Used when a port names no protocol. */
export const PORT_PROTOCOL_DEFAULT: PortProtocol = 'https'

/** Largest `max_players` of a game mode. */
const PLAYERS_MAX = 256
const maxPlayers = (description: string) => Type.Integer({ minimum: 1, maximum: PLAYERS_MAX, description })
const max_players = {
  max_players: Type.Optional(
    maxPlayers('Maximum number of players in a lobby when a player comes by find. Default 32.'),
  ),
  max_players_direct: Type.Optional(
    maxPlayers(
      'Maximum number of players in a lobby when a player comes by join. Default: `max_players`. A higher value keeps seats for friends who join by id.',
    ),
  ),
  max_players_party: Type.Optional(
    maxPlayers('Maximum number of players in a lobby when a party comes. Default: `max_players`.'),
  ),
  max_spectators: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: PLAYERS_MAX,
      description: 'Maximum number of spectators in a lobby, who count in no limit of players. Default 0: none.',
    }),
  ),
}

const Tier = Type.String({
  pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
  maxLength: 16,
  description:
    'Region tier of the lobbies: its `tier_name_id`, which sets their processor and memory. Default: the default tier of the region. Example: `basic-1d1`.',
})

const IdleLobbies = object(
  {
    min: Type.Integer({
      minimum: 0,
      maximum: 16,
      description: 'Number of lobbies that are kept ready without players.',
    }),
    max: Type.Integer({
      minimum: 0,
      maximum: 32,
      description: 'Maximum number of lobbies without players. Above it, the oldest are stopped.',
    }),
  },
  'Lobbies without players, for each game mode and region. Default: none is started ahead, and none stays.',
)
export type IdleLobbies = Static<typeof IdleLobbies>

/** Settings that a region can override. */
const RegionOverrides = object({ tier: Type.Optional(Tier), idle_lobbies: Type.Optional(IdleLobbies) })

const PortRange = object({
  min: Type.Integer({ minimum: 1, maximum: 65535, description: 'First port of the range. Example: 27000.' }),
  max: Type.Integer({ minimum: 1, maximum: 65535, description: 'Last port of the range. Example: 27099.' }),
})
export type PortRange = Static<typeof PortRange>

const Port = object({
  port: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 65535,
      description:
        'Number on which the server listens in every lobby, for servers whose number is fixed. Requires a machine on which each lobby has a network of its own; elsewhere the start fails with `no_network`. Default: the platform chooses a number, which is in `PORT_<NAME>`.',
    }),
  ),
  port_range: Type.Optional(
    Type.Object(PortRange.properties, {
      additionalProperties: false,
      description:
        'Range of tcp or udp ports that players reach without a proxy. Requires `network_mode` `host`, and must be within `MUSTER_HOST_PORT_RANGES` of the operator. All lobbies share the range: the server chooses a free port.',
    }),
  ),
  protocol: Type.Optional(PortProtocol),
  proxy: Type.Optional(
    Type.Enum(['game_guard', 'none'], {
      description:
        '`none` is valid only together with `port_range`, and required there. All other ports go through the proxy: `game_guard`, the default.',
    }),
  ),
  proxy_protocol: Type.Optional(
    Type.Boolean({
      description:
        'For `tcp`, `tcp_tls` and `udp`: whether the server receives the address of the player in a PROXY protocol v2 header, at the start of a connection and of every datagram. Default false.',
    }),
  ),
  require_player_token: Type.Optional(
    Type.Boolean({
      description:
        'For `udp`: whether the platform drops datagrams from a source until it has sent a valid player token. Default false.',
    }),
  ),
  same_number_as: Type.Optional(
    Type.String({
      pattern: PORT_NAME_PATTERN,
      description:
        'Name of another port of this list. Players reach both ports at the same number, one by TCP and one by UDP. Example: a `udp` port with `same_number_as: game`, where `game` is `tcp`. Default: each port has a number of its own.',
    }),
  ),
  ...admissionMembers,
})

const Docker = object(
  {
    image_id: Type.Optional(
      Id(
        'Id of the build that lobbies run. Required for every game mode, here or in `matchmaker.docker`, if there is no `image`.',
      ),
    ),
    args: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 512 }), {
        maxItems: 64,
        description:
          'Command line of the server: the program and its arguments, at most 64. Of a container image: what follows its entrypoint, in place of its `CMD`. Placeholders such as `${PORT_GAME}` are filled when a lobby starts; `$${` is a literal `${`. Example: `["node", "server.mjs"]`.',
      }),
    ),
    env: Type.Optional(
      map(
        ENV_NAME_PATTERN,
        Type.String({ maxLength: 512 }),
        64,
        'Environment variables of the server, at most 64, in addition to those of the platform. Placeholders are filled as in `args`. Those of `matchmaker.docker` and of the game mode are merged by name.',
      ),
    ),
    ...imageMembers,
    network_mode: Type.Optional(
      Type.Enum(['bridge', 'host'], {
        description:
          '`bridge`: players reach the server through the proxy. `host`: ports with `port_range` are allowed, if the operator permits it. Default `bridge`.',
      }),
    ),
    network: Type.Optional(
      Type.Enum(['internet', 'none'], {
        description:
          "What the server reaches beside the platform and DNS. `internet`: public IPv4 addresses. `none`: nothing. Never private, link-local or other lobbies' addresses. Applies where lobbies have a network of their own. Default `internet`.",
      }),
    ),
    standard_input: Type.Optional(
      Type.Boolean({
        description:
          "Whether the developers of the game may write lines to the server's standard input while a lobby runs, for example console commands. Default false: the standard input is `/dev/null`.",
      }),
    ),
    terminal: Type.Optional(
      Type.Boolean({
        description:
          'Whether the output of the server goes to a terminal, for servers that write nothing, or only now and then, to a pipe. A terminal has one stream: all lines are in `stdout`. Default false.',
      }),
    ),
    ports: Type.Optional(
      map(
        PORT_NAME_PATTERN,
        Port,
        16,
        'Ports of the server by name, at most 16. The server listens on the number in `PORT_<NAME>`.',
      ),
    ),
    files: Type.Optional(FilesConfig),
    ready: Type.Optional(ReadyConfig),
    ...seatsMembers,
    ...protocolMembers,
  },
  'The server that lobbies run. The name is the same for every kind of build. A game mode inherits each member that it does not have from `matchmaker.docker`. With another build it does not inherit `args`, `entrypoint`, `working_folder`, `user` and `stop_signal`.',
)

const IdentityRequirement = Type.Enum(['none', 'guest', 'registered'], {
  description:
    'Which callers are accepted. `none`: all. `guest`: only players with an identity token. `registered`: always refused, because the platform has no registered players. Default `none`.',
})
export type IdentityRequirement = Static<typeof IdentityRequirement>

const Enabled = Type.Boolean({ description: 'Whether players may use the action.' })

const FindAction = object({
  enabled: Enabled,
  identity_requirement: Type.Optional(IdentityRequirement),
  ...verificationMembers,
})
const CreateAction = object({
  enabled: Enabled,
  identity_requirement: Type.Optional(IdentityRequirement),
  max_lobbies_per_identity: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 32_767,
      description: 'Maximum number of running custom lobbies per identity. Default: no maximum.',
    }),
  ),
  ...verificationMembers,
  enable_public: Type.Optional(
    Type.Boolean({
      description: 'Whether players may create public lobbies, which find and lists include. Default false.',
    }),
  ),
  enable_private: Type.Optional(
    Type.Boolean({
      description: 'Whether players may create private lobbies, which can only be joined by their id. Default true.',
    }),
  ),
})

export const GameMode = object(
  {
    regions: Type.Optional(
      map(
        NAME_PATTERN,
        RegionOverrides,
        64,
        'Regions in which the game mode runs, by name, with settings that apply there. Default: `matchmaker.regions`. Example: `{"frankfurt": {}}`.',
      ),
    ),
    ...max_players,
    tier: Type.Optional(Tier),
    idle_lobbies: Type.Optional(IdleLobbies),
    docker: Type.Optional(Docker),
    listable: Type.Optional(
      Type.Boolean({ description: 'Whether lists of lobbies include its public lobbies. Default true.' }),
    ),
    taggable: Type.Optional(Type.Boolean({ description: 'Whether find and create may send `tags`. Default false.' })),
    allow_dynamic_max_players: Type.Optional(
      Type.Boolean({ description: 'Whether find and create may send `max_players` for a new lobby. Default false.' }),
    ),
    ratings: Type.Optional(
      object(
        {},
        'Enables ratings: the server of a lobby may report results of matches, which change the ratings of its players in this game mode. Default: disabled.',
      ),
    ),
    idle_grace_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 3_600_000,
        description:
          'Time in milliseconds after which a lobby without players is stopped. Default 15000. Open connections count as players until the server has called `connected` once.',
      }),
    ),
    ready_deadline_ms: Type.Optional(
      Type.Integer({
        minimum: 1_000,
        maximum: 3_600_000,
        description: 'Time in milliseconds within which the server must be ready. Default 300000.',
      }),
    ),
    player_deadline_ms: Type.Optional(
      Type.Integer({
        minimum: 1_000,
        maximum: 3_600_000,
        description: 'Time in milliseconds within which a player must connect, or lose the seat. Default 120000.',
      }),
    ),
    matching: Type.Optional(MatchingConfig),
    actions: Type.Optional(
      object(
        {
          find: Type.Optional(described(FindAction, 'Seats in any open lobby. Default: enabled.')),
          join: Type.Optional(described(FindAction, 'Seats in a lobby whose id is known. Default: enabled.')),
          create: Type.Optional(described(CreateAction, 'Custom lobbies that players create. Default: disabled.')),
        },
        'What players may do, and under which conditions.',
      ),
    ),
  },
  'A game mode: how its lobbies run and who may join them.',
)

const CustomHeader = object({
  name: Type.String({ minLength: 1, maxLength: 512, description: 'Name of the header. Example: `Cache-Control`.' }),
  value: Type.String({ maxLength: 1024, description: 'Value of the header. Example: `max-age=3600`.' }),
})
const Middleware = object({
  kind: object(
    {
      custom_headers: object(
        { headers: Type.Array(CustomHeader, { maxItems: 32, description: 'The headers, at most 32.' }) },
        'Adds headers to the response.',
      ),
    },
    'What the middleware does.',
  ),
})
const CdnRoute = object({
  glob: Type.String({
    minLength: 1,
    maxLength: 256,
    description:
      'Paths of files. `*` matches any text without a slash, `**` any text, `**/` any folders, `?` one character except a slash. Example: `**/*.wasm`.',
  }),
  priority: Type.Integer({
    minimum: 0,
    maximum: 100,
    description:
      'Precedence. When several routes set the same header, the highest priority wins; of equal ones, the first.',
  }),
  middlewares: Type.Array(Middleware, {
    maxItems: 32,
    description: 'What happens to responses with these files, at most 32.',
  }),
})
/** A glob of the version config and the headers that it adds to files of the site. */
export type CdnRoute = Static<typeof CdnRoute>

const NotFound = Type.Enum(['404.html', 'index.html'], {
  description:
    'File of the site that is served for unknown paths: `404.html` with status 404, or `index.html` with status 200 for a single-page app. Default: `404.html` if the site has it, otherwise a page of the platform.',
})
export type NotFound = Static<typeof NotFound>

export const VersionConfig = object(
  {
    kv: Type.Optional(
      object({}, 'Enables entries (key-value storage) in namespaces with this version. Default: disabled.'),
    ),
    cdn: Type.Optional(
      object(
        {
          site_id: Type.Optional(described(SiteId, 'Id of the site to serve. Required in this section.')),
          routes: Type.Optional(
            Type.Array(CdnRoute, { maxItems: 32, description: 'Headers for files, by path; at most 32 routes.' }),
          ),
          not_found: Type.Optional(NotFound),
        },
        'The site of the version. Default: no site.',
      ),
    ),
    matchmaker: Type.Optional(
      object(
        {
          game_modes: map(NAME_PATTERN, GameMode, 32, 'Game modes by name, at most 32.'),
          regions: Type.Optional(
            map(
              NAME_PATTERN,
              RegionOverrides,
              64,
              'Regions in which lobbies run, by name, for game modes without `regions`. Default: all regions of the platform.',
            ),
          ),
          ...max_players,
          tier: Type.Optional(Tier),
          idle_lobbies: Type.Optional(IdleLobbies),
          docker: Type.Optional(Docker),
          captcha: Type.Optional(CaptchaConfig),
          fill_outdated_lobbies: Type.Optional(
            Type.Boolean({
              description:
                'Whether a find that names an earlier version gets a seat in an open lobby of that version while this version is deployed. No new lobby of an earlier version is started, and game modes with `matching` are left out. Default false: such a find is refused with `MATCHMAKER_VERSION_REPLACED`.',
            }),
          ),
        },
        'Lobbies of the version. Members other than `game_modes`, `captcha` and `fill_outdated_lobbies` are defaults for all game modes. Default: no lobbies.',
      ),
    ),
  },
  'Config of a version: its site, its lobbies and its storage.',
)
export type VersionConfig = Static<typeof VersionConfig>
