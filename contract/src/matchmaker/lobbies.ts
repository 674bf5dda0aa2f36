// Lobbies: operations of players, of lobby servers and of lobby lists. Every operation is also served below /v1/lobbies, the
// address that older clients use.
import Type from 'typebox'
import { CaptchaResponse } from '../captcha-config.ts'
import { LobbyId, VersionId } from '../ids.ts'
import { Attributes } from '../matching-config.ts'
import { operation } from '../operation.ts'
import { described, Empty, object } from '../records.ts'
import { Latencies, RegionInfos } from './regions.ts'
import { Role, SpectatorRole } from './roles.ts'

const Identifier = Type.String({ minLength: 1, maxLength: 64 })
const GameModeName = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'Name of a game mode in the version config, or its `game_mode_id`. Example: `default`.',
})
export const Tags = Type.Record(Type.String(), Type.String(), {
  additionalProperties: false,
  maxProperties: 64,
  description:
    'Tags of the lobby, at most 8: names of at most 128 bytes, values of at most 512 bytes. Find matches lobbies that have all of them. Example: `{"mode": "ranked"}`.',
})
const MaxPlayers = Type.Integer({
  minimum: 1,
  maximum: 256,
  description:
    'Maximum number of players of a new lobby. The game mode needs `allow_dynamic_max_players`. Default: the limit of the game mode.',
})

/** Read when the version has a captcha. */
const Captcha = object(
  {
    hcaptcha: Type.Optional(described(CaptchaResponse, 'Response of the hCaptcha widget.')),
    turnstile: Type.Optional(described(CaptchaResponse, 'Response of the Turnstile widget.')),
  },
  'Response of the captcha that the player solved. Required after `CAPTCHA_CAPTCHA_REQUIRED`; valid once.',
)
const VerificationData = Type.Unknown({
  description:
    "Any JSON of at most 16 KiB and a depth of 32. It is sent unchanged to the game's own verification endpoint, if the game mode has one.",
})

const WithParty = Type.Boolean({
  description:
    'Whether to request seats for the whole party: all members get seats, or none. The caller must be the leader, with an identity token. Each member receives an event with the seat. Default false.',
})

/** Read where the game mode has `matching`. */
const matching = {
  attributes: Type.Optional(Attributes),
  member_attributes: Type.Optional(
    Type.Record(Type.String({ format: 'uuid' }), Attributes, {
      additionalProperties: false,
      maxProperties: 32,
      description:
        'With `party`: attributes of members by `identity_id`. Members that are not named have `attributes`.',
    }),
  ),
  wait_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 50_000,
      description:
        'How long the call waits for a match, in milliseconds. After it, the call returns `MATCHMAKER_WAITING` with what is missing; the same call with the same Idempotency-Key goes on and keeps its age. Default 50000.',
    }),
  ),
}

/** Version of the page that asks. `what`: what the request does with it. */
const PageVersion = (what: string) =>
  Type.Optional(
    described(
      VersionId,
      `Version that the caller was built for, such as \`version_id\` of \`/.well-known/muster.json\`. ${what} Default: any version. Ignored with a development token.`,
    ),
  )

/** A backend of the game requests a seat for a player. */
const backend = {
  namespace_id: Type.Optional(
    Type.String({
      format: 'uuid',
      description:
        'Cloud tokens only, and required for them: id of the namespace, which belongs to the game of the token.',
    }),
  ),
  clients: Type.Optional(
    Type.Array(
      object({
        address: Type.String({
          minLength: 2,
          maxLength: 45,
          description: 'IPv4 or IPv6 address of the player. Example: `203.0.113.7`.',
        }),
        user_agent: Type.Optional(Type.String({ maxLength: 1024, description: 'User-Agent header of the player.' })),
      }),
      {
        minItems: 1,
        maxItems: 1,
        description:
          'Cloud tokens only, and required for them: the player who gets the seat. Limits, regions and verification apply to this player. No captcha is required.',
      },
    ),
  ),
}

export const JoinPort = object(
  {
    host: Type.Optional(
      Type.String({ description: '`hostname:port`. Absent with `port_range`. Example: `localhost:26000`.' }),
    ),
    hostname: Type.String({ description: 'Host name to connect to.' }),
    port: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 65535, description: 'Port number to connect to. Absent with `port_range`.' }),
    ),
    port_range: Type.Optional(
      object(
        {
          min: Type.Integer({ description: 'First port of the range.' }),
          max: Type.Integer({ description: 'Last port of the range.' }),
        },
        'Range of ports of the machine, instead of `port`. The server says which of them it uses.',
      ),
    ),
    is_tls: Type.Boolean({ description: 'Whether to connect over TLS.' }),
    url: Type.String({
      description:
        'Ready-to-use URL. Append a path; for WebSocket replace `http` by `ws`. Example: `http://localhost:8080/…`.',
    }),
  },
  'How a player connects to a port of the lobby server.',
)
const JoinPorts = Type.Record(Type.String(), JoinPort, {
  description: 'Ports of the lobby server, by their names in the version config.',
})
const JoinPlayer = object(
  {
    token: Type.String({
      description:
        'Player token. Send it to the lobby server, which reports it with `connected`. The seat is reserved until then, at most for `player_deadline_ms`.',
    }),
    role: SpectatorRole,
  },
  'The player who has the seat.',
)
const JoinRegion = object(
  {
    region_id: described(Identifier, 'Name of the region. Example: `frankfurt`.'),
    display_name: Type.String({ description: 'Name of the region, for people. Example: `Frankfurt`.' }),
    expected_ms: Type.Optional(
      Type.Number({
        description:
          'Latency of this region in `latencies_ms` of the request. Absent when the request does not have it.',
      }),
    ),
  },
  'Region in which the lobby runs.',
)

/** `ports` and `player` stand twice: older clients read them inside `lobby`. */
export const Seat = object(
  {
    lobby: object(
      {
        lobby_id: LobbyId,
        version_id: Type.Optional(
          described(
            VersionId,
            'Version that the lobby runs. A page of another version can tell the player to reload it. Absent with a development token.',
          ),
        ),
        code: Type.Optional(
          Type.String({
            description:
              'Code with which others join the lobby: six letters. Present when the lobby was created with `with_code`. Example: `KXTRBM`.',
          }),
        ),
        region: JoinRegion,
        ports: JoinPorts,
        player: JoinPlayer,
      },
      'The lobby in which the seat is.',
    ),
    ports: JoinPorts,
    player: JoinPlayer,
    team: Type.Optional(
      Type.String({ description: 'Team of the player. Absent where the game mode has no teams. Example: `red`.' }),
    ),
  },
  'A reserved seat in a lobby, and how to connect.',
)

const ADMISSION_ERRORS = [
  'CAPTCHA_CAPTCHA_REQUIRED',
  'CAPTCHA_CAPTCHA_FAILED',
  'CAPTCHA_CAPTCHA_INVALID',
  'CAPTCHA_PROVIDER_FAILED',
  'MATCHMAKER_VERIFICATION_FAILED',
  'MATCHMAKER_VERIFICATION_REQUEST_FAILED',
] as const

const IDENTITY_ERRORS = [
  'MATCHMAKER_IDENTITY_REQUIRED',
  'MATCHMAKER_REGISTRATION_REQUIRED',
  'PARTY_NOT_FOUND',
  'PARTY_LEADER_REQUIRED',
] as const

const SEAT_ERRORS = [
  ...IDENTITY_ERRORS,
  'MATCHMAKER_PARTY_TOO_LARGE',
  ...ADMISSION_ERRORS,
  'MATCHMAKER_GAME_MODE_NOT_FOUND',
  'MATCHMAKER_REGION_NOT_FOUND',
  'MATCHMAKER_TAGS_DISABLED',
  'MATCHMAKER_TOO_MANY_TAGS',
  'MATCHMAKER_TAG_NAME_TOO_LONG',
  'MATCHMAKER_TAG_TOO_LONG',
  'MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED',
  'MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID',
  'MATCHMAKER_VERSION_DRAINING',
  'MATCHMAKER_VERSION_REPLACED',
  'MATCHMAKER_TOO_MANY_LOBBIES',
  'MATCHMAKER_REGION_FULL',
  'MATCHMAKER_NO_PORTS',
  'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE',
  'MATCHMAKER_LOBBY_STOPPED',
  'MATCHMAKER_LOBBY_NOT_STARTED',
] as const

export const findLobby = operation({
  id: 'lobbies.find',
  service: 'matchmaker',
  method: 'POST',
  path: '/matchmaker/lobbies/find',
  aliases: ['/v1/lobbies/find'],
  summary:
    'Reserves a seat in the fullest open lobby, or in a new one. With `matching` in the game mode: with players who fit. Returns when the lobby is ready.',
  auth: ['namespace', 'cloud', 'development'],
  rate_limit: 'seats',
  idempotent: true,
  body: object({
    game_modes: Type.Array(GameModeName, {
      maxItems: 32,
      description: 'Acceptable game modes, by name or id. At least one; a new lobby gets the first possible one.',
    }),
    regions: Type.Optional(
      Type.Array(Identifier, {
        maxItems: 64,
        description:
          'Acceptable regions, by name, best first. Default: the region of the game modes with the least latency in `latencies_ms`, or the nearest one without it. Example: `["frankfurt"]`.',
      }),
    ),
    latencies_ms: Type.Optional(Latencies),
    role: Type.Optional(
      described(
        Role,
        '`spectator`: a seat as a spectator, in the running lobby with most players that has room for one. Full and closed lobbies count too, and no lobby is started. Default `regions`: all regions of the game modes. Not together with `party`, `attributes` or `member_attributes`. Default: `player`.',
      ),
    ),
    prevent_auto_create_lobby: Type.Optional(
      Type.Boolean({ description: 'Whether to return an error instead of starting a new lobby. Default false.' }),
    ),
    version_id: PageVersion(
      'Only lobbies of it are found. If another version is deployed, only its open lobbies are, and only if the deployed version has `fill_outdated_lobbies`; otherwise the error is `MATCHMAKER_VERSION_REPLACED`.',
    ),
    tags: Type.Optional(Tags),
    max_players: Type.Optional(MaxPlayers),
    party: Type.Optional(WithParty),
    ...matching,
    captcha: Type.Optional(Captcha),
    verification_data: Type.Optional(VerificationData),
    ...backend,
  }),
  response: Seat,
  errors: [
    'NAMESPACE_NOT_FOUND',
    ...SEAT_ERRORS,
    'MATCHMAKER_WAITING',
    'MATCHMAKER_NO_GAME_MODE_PROVIDED',
    'MATCHMAKER_FIND_DISABLED',
    'MATCHMAKER_SPECTATORS_DISABLED',
    'MATCHMAKER_NO_AVAILABLE_LOBBIES',
    'MATCHMAKER_AUTO_CREATE_FAILED',
  ],
})

export const joinLobby = operation({
  id: 'lobbies.join',
  service: 'matchmaker',
  method: 'POST',
  path: '/matchmaker/lobbies/join',
  aliases: ['/v1/lobbies/join'],
  summary:
    'Reserves a seat in the lobby with this id or code, even when it is closed or private. A stalled lobby refuses.',
  auth: ['namespace', 'cloud', 'development'],
  rate_limit: 'seats',
  idempotent: true,
  body: Type.Object(
    {
      lobby_id: Type.Optional(described(LobbyId, 'Id of the lobby. Required without `code`.')),
      code: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 32,
          description:
            'Code of the lobby, instead of `lobby_id`; upper or lower case. Wrong codes are limited for each client. Example: `KXTRBM`.',
        }),
      ),
      version_id: PageVersion('A lobby of another version refuses with `MATCHMAKER_VERSION_REPLACED`.'),
      role: Type.Optional(Role),
      party: Type.Optional(WithParty),
      captcha: Type.Optional(Captcha),
      verification_data: Type.Optional(VerificationData),
      ...backend,
    },
    { additionalProperties: false, minProperties: 1 },
  ),
  response: Seat,
  errors: [
    'NAMESPACE_NOT_FOUND',
    ...IDENTITY_ERRORS,
    ...ADMISSION_ERRORS,
    'MATCHMAKER_JOIN_DISABLED',
    'MATCHMAKER_SPECTATORS_DISABLED',
    'MATCHMAKER_LOBBY_NOT_FOUND',
    'MATCHMAKER_LOBBY_CODE_INVALID',
    'MATCHMAKER_LOBBY_STOPPED',
    'MATCHMAKER_VERSION_DRAINING',
    'MATCHMAKER_VERSION_REPLACED',
    'MATCHMAKER_LOBBY_CLOSED',
    'MATCHMAKER_LOBBY_FULL',
    'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE',
    'MATCHMAKER_LOBBY_NOT_STARTED',
  ],
})

export const createLobby = operation({
  id: 'lobbies.create',
  service: 'matchmaker',
  method: 'POST',
  path: '/matchmaker/lobbies/create',
  aliases: ['/v1/lobbies/create'],
  summary: 'Creates a custom lobby and reserves the first seat in it.',
  auth: ['namespace', 'cloud', 'development'],
  rate_limit: 'seats',
  idempotent: true,
  body: object({
    game_mode: GameModeName,
    region: Type.Optional(
      described(
        Identifier,
        'Name of the region. Default: the region of the game mode with the least latency in `latencies_ms`, or the nearest one without it. Example: `frankfurt`.',
      ),
    ),
    latencies_ms: Type.Optional(Latencies),
    publicity: Type.Optional(
      Type.Enum(['public', 'private'], {
        description:
          '`public`: find and lists include the lobby. `private`: players join it by its id or code only. The game mode must enable it. Default: `public` when the game mode enables it, otherwise `private`.',
      }),
    ),
    with_code: Type.Optional(
      Type.Boolean({
        description:
          'Whether the lobby gets a code of six letters, with which other players join it. It is `lobby.code` of each seat, and ends with the lobby. Default false.',
      }),
    ),
    tags: Type.Optional(Tags),
    max_players: Type.Optional(MaxPlayers),
    lobby_config: Type.Optional(
      Type.Unknown({
        description: 'Any JSON of at most 16 KiB. The lobby server receives it unchanged in `PLATFORM_LOBBY_CONFIG`.',
      }),
    ),
    version_id: PageVersion('If another version is deployed, the error is `MATCHMAKER_VERSION_REPLACED`.'),
    party: Type.Optional(WithParty),
    captcha: Type.Optional(Captcha),
    verification_data: Type.Optional(VerificationData),
    ...backend,
  }),
  response: Seat,
  errors: [
    'NAMESPACE_NOT_FOUND',
    ...SEAT_ERRORS,
    'MATCHMAKER_CUSTOM_LOBBIES_DISABLED',
    'MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID',
    'MATCHMAKER_CUSTOM_LOBBY_LIMIT_REACHED',
    'MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE',
  ],
})

export const setLobbyReady = operation({
  id: 'lobbies.ready',
  service: 'matchmaker',
  method: 'POST',
  path: '/matchmaker/lobbies/ready',
  aliases: ['/v1/lobbies/ready'],
  summary: 'Reports that the lobby server accepts players. Waiting requests for a seat in it return now.',
  auth: ['lobby', 'development'],
  rate_limit: 'matchmaker',
  repeatable: true,
  response: Empty,
  errors: ['MATCHMAKER_LOBBY_STOPPED'],
})

export const setLobbyClosed = operation({
  id: 'lobbies.setClosed',
  service: 'matchmaker',
  method: 'PUT',
  path: '/matchmaker/lobbies/closed',
  aliases: ['/v1/lobbies/closed'],
  summary: 'Closes or reopens the lobby. Find leaves out a closed lobby; players can still join it by its id.',
  auth: ['lobby', 'development'],
  rate_limit: 'matchmaker',
  body: object({ is_closed: Type.Boolean({ description: 'Whether find leaves the lobby out.' }) }),
  response: Empty,
  errors: ['MATCHMAKER_LOBBY_STOPPED'],
})

export const setLobbyState = operation({
  id: 'lobbies.setState',
  service: 'matchmaker',
  method: 'PUT',
  path: '/matchmaker/lobbies/state',
  aliases: ['/v1/lobbies/state'],
  summary: 'Sets the state of the lobby, which lists and verification include. A request without body clears it.',
  auth: ['lobby', 'development'],
  rate_limit: 'matchmaker',
  body: Type.Unknown({ description: 'State of the lobby: any JSON of at most 16 KiB, stored unchanged.' }),
  response: Empty,
  errors: ['MATCHMAKER_LOBBY_STOPPED', 'API_BODY_TOO_LARGE'],
})

export const getLobbyState = operation({
  id: 'lobbies.getState',
  service: 'matchmaker',
  method: 'GET',
  path: '/matchmaker/lobbies/{lobby_id}/state',
  aliases: ['/v1/lobbies/{lobby_id}/state'],
  summary: 'Gets the state of a lobby in the same namespace; null when it has none.',
  auth: ['lobby', 'namespace', 'development'],
  rate_limit: 'matchmaker',
  params: object({ lobby_id: LobbyId }),
  response: Type.Unknown({ description: 'State of the lobby: any JSON, as the lobby server sent it.' }),
  errors: ['MATCHMAKER_LOBBY_NOT_FOUND'],
})

const game_mode_names = {
  game_mode_id: Type.String({
    format: 'uuid',
    description: 'Id of the game mode: a UUIDv5 of the game and the name, the same in every version.',
  }),
  game_mode_name_id: Type.String({ description: 'Name of the game mode in the version config.' }),
}

export const GameModeInfo = object(game_mode_names)

export const LobbyInfo = object(
  {
    region_id: described(Identifier, 'Name of the region. Example: `frankfurt`.'),
    ...game_mode_names,
    lobby_id: LobbyId,
    max_players_normal: Type.Integer({ description: 'Maximum number of players when a player comes by find.' }),
    max_players_direct: Type.Integer({ description: 'Maximum number of players when a player comes by join.' }),
    max_players_party: Type.Integer({ description: 'Maximum number of players when a party comes.' }),
    total_player_count: Type.Integer({ description: 'Taken seats of players, reserved and connected.' }),
    max_spectators: Type.Optional(
      Type.Integer({ description: 'Maximum number of spectators. Absent when the game mode has none.' }),
    ),
    spectator_count: Type.Optional(
      Type.Integer({ description: 'Taken seats of spectators. Absent when the game mode has none.' }),
    ),
    is_stalled: Type.Optional(
      Type.Boolean({ description: 'True while the server does not respond and no player may join. Otherwise absent.' }),
    ),
    state: Type.Optional(
      Type.Unknown({ description: 'State of the lobby, null when it has none. Present with `include_state`.' }),
    ),
  },
  'A lobby in a list.',
)

export const listLobbies = operation({
  id: 'lobbies.list',
  service: 'matchmaker',
  method: 'GET',
  path: '/matchmaker/lobbies/list',
  aliases: ['/v1/lobbies/list'],
  summary:
    'Lists the public lobbies of the deployed version that have players, oldest first, with the game modes and regions of the version.',
  auth: ['namespace', 'development'],
  rate_limit: 'matchmaker',
  query: object({
    include_state: Type.Optional(
      Type.Boolean({ description: 'Whether to include the state of each lobby. Default false.' }),
    ),
    anchor: Type.Optional(Type.String({ format: 'uuid', description: 'Next page: `anchor` of the previous page.' })),
  }),
  response: object({
    game_modes: Type.Array(GameModeInfo, { description: 'Game modes of the deployed version.' }),
    regions: RegionInfos,
    lobbies: Type.Array(LobbyInfo, {
      description:
        'A page of at most 256 lobbies. A lobby without players is listed only when it is the only one of its game mode.',
    }),
    anchor: Type.Optional(Type.String({ description: 'Send it to get the next page. Absent on the last page.' })),
  }),
})
