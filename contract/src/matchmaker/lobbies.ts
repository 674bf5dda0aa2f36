// Lobbies, as a player's client, a lobby server and a lobby browser speak of them. Every operation is also mounted
// below /v1/lobbies, the address under which older clients know it.
import Type from 'typebox'
import { CaptchaResponse } from '../captcha-config.ts'
import { operation } from '../operation.ts'
import { Empty, Id, object } from '../records.ts'
import { RegionInfos } from './regions.ts'

const Identifier = Type.String({ minLength: 1, maxLength: 64 })
const GameModeName = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'Name of a game mode, or its `game_mode_id`.',
})
const Tags = Type.Record(Type.String(), Type.String(), {
  additionalProperties: false,
  maxProperties: 64,
  description: 'At most 8; a name at most 128, a value at most 512 bytes. A lobby matches when it has all of them.',
})
const MaxPlayers = Type.Integer({
  minimum: 1,
  maximum: 256,
  description: 'Replaces the limit of a lobby that is created; the game mode must allow it.',
})

/** Looked at when the version asks for a captcha. */
const Captcha = object(
  { hcaptcha: Type.Optional(CaptchaResponse), turnstile: Type.Optional(CaptchaResponse) },
  'Where the version asks for a captcha: the response that the provider gave the player. It is good once.',
)
const VerificationData = Type.Unknown({
  description:
    "JSON of at most 16 KiB and a depth of 32, passed on as it is to the game's own verification, where it has one.",
})

const WithParty = Type.Boolean({
  description:
    'By the leader of a party, with his identity token: seats for all of it, or for nobody. Each member is told of his own by an event.',
})

/** The backend of a game speaks for a player of it. */
const backend = {
  namespace_id: Type.Optional(
    Type.String({ format: 'uuid', description: 'With a cloud token, and with no other: a namespace of its game.' }),
  ),
  clients: Type.Optional(
    Type.Array(
      object({
        address: Type.String({ minLength: 2, maxLength: 45, description: "The player's IPv4 or IPv6 address." }),
        user_agent: Type.Optional(
          Type.String({ maxLength: 1024, description: "What the player's client calls itself." }),
        ),
      }),
      {
        minItems: 1,
        maxItems: 1,
        description:
          'With a cloud token, and with no other: for whom the seat is. Limits, regions and verification are about this player; a captcha is not asked for.',
      },
    ),
  ),
}

export const JoinPort = object({
  host: Type.Optional(Type.String({ description: 'hostname:port' })),
  hostname: Type.String(),
  port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65535 })),
  port_range: Type.Optional(
    object({ min: Type.Integer(), max: Type.Integer() }, 'In the place of `port`: all of them reach the server.'),
  ),
  is_tls: Type.Boolean(),
  url: Type.String({ description: 'Reaches the port as it stands; to http append a path, or put ws in its place.' }),
})
const JoinPorts = Type.Record(Type.String(), JoinPort, { description: 'By port name.' })
const JoinPlayer = object({
  token: Type.String({ description: 'Reserves the seat until it is used or expires. For the lobby server.' }),
})
const JoinRegion = object({ region_id: Identifier, display_name: Type.String() })

/** `ports` and `player` stand twice: older clients read them inside `lobby`. */
export const Seat = object({
  lobby: object({ lobby_id: Id, region: JoinRegion, ports: JoinPorts, player: JoinPlayer }),
  ports: JoinPorts,
  player: JoinPlayer,
})

const DOOR_ERRORS = [
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
  ...DOOR_ERRORS,
  'MATCHMAKER_GAME_MODE_NOT_FOUND',
  'MATCHMAKER_REGION_NOT_FOUND',
  'MATCHMAKER_TAGS_DISABLED',
  'MATCHMAKER_TOO_MANY_TAGS',
  'MATCHMAKER_TAG_NAME_TOO_LONG',
  'MATCHMAKER_TAG_TOO_LONG',
  'MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED',
  'MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID',
  'MATCHMAKER_VERSION_DRAINING',
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
  summary: 'Get a seat in the fullest open lobby, or in a new one; answers when the lobby is ready.',
  auth: ['namespace', 'cloud', 'development'],
  rate_limit: 'seats',
  idempotent: true,
  body: object({
    game_modes: Type.Array(GameModeName, { maxItems: 32 }),
    regions: Type.Optional(Type.Array(Identifier, { maxItems: 64 })),
    prevent_auto_create_lobby: Type.Optional(Type.Boolean()),
    tags: Type.Optional(Tags),
    max_players: Type.Optional(MaxPlayers),
    party: Type.Optional(WithParty),
    captcha: Type.Optional(Captcha),
    verification_data: Type.Optional(VerificationData),
    ...backend,
  }),
  response: Seat,
  errors: [
    'NAMESPACE_NOT_FOUND',
    ...SEAT_ERRORS,
    'MATCHMAKER_NO_GAME_MODE_PROVIDED',
    'MATCHMAKER_FIND_DISABLED',
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
  summary: 'Get a seat in the lobby with this id, closed or not, private or not; its server must answer.',
  auth: ['namespace', 'cloud', 'development'],
  rate_limit: 'seats',
  idempotent: true,
  body: object({
    lobby_id: Id,
    party: Type.Optional(WithParty),
    captcha: Type.Optional(Captcha),
    verification_data: Type.Optional(VerificationData),
    ...backend,
  }),
  response: Seat,
  errors: [
    'NAMESPACE_NOT_FOUND',
    ...IDENTITY_ERRORS,
    ...DOOR_ERRORS,
    'MATCHMAKER_JOIN_DISABLED',
    'MATCHMAKER_LOBBY_NOT_FOUND',
    'MATCHMAKER_LOBBY_STOPPED',
    'MATCHMAKER_VERSION_DRAINING',
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
  summary: 'Create a custom lobby and get the first seat in it.',
  auth: ['namespace', 'cloud', 'development'],
  rate_limit: 'seats',
  idempotent: true,
  body: object({
    game_mode: GameModeName,
    region: Type.Optional(Identifier),
    publicity: Type.Optional(Type.Enum(['public', 'private'])),
    tags: Type.Optional(Tags),
    max_players: Type.Optional(MaxPlayers),
    lobby_config: Type.Optional(
      Type.Unknown({ description: 'JSON of at most 16 KiB, passed to the lobby server as it was sent.' }),
    ),
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
  summary: 'The lobby listens; whoever waits for a seat in it is answered now.',
  auth: ['lobby', 'development'],
  rate_limit: 'matchmaker',
  response: Empty,
  errors: ['MATCHMAKER_LOBBY_STOPPED'],
})

export const setLobbyClosed = operation({
  id: 'lobbies.setClosed',
  service: 'matchmaker',
  method: 'PUT',
  path: '/matchmaker/lobbies/closed',
  aliases: ['/v1/lobbies/closed'],
  summary: 'A closed lobby is not found any more, but still joined by its id.',
  auth: ['lobby', 'development'],
  rate_limit: 'matchmaker',
  body: object({ is_closed: Type.Boolean() }),
  response: Empty,
  errors: ['MATCHMAKER_LOBBY_STOPPED'],
})

export const setLobbyState = operation({
  id: 'lobbies.setState',
  service: 'matchmaker',
  method: 'PUT',
  path: '/matchmaker/lobbies/state',
  aliases: ['/v1/lobbies/state'],
  summary: 'Set the state of the lobby: any JSON of at most 16 KiB, kept as it was sent. No body clears it.',
  auth: ['lobby', 'development'],
  rate_limit: 'matchmaker',
  body: Type.Unknown(),
  response: Empty,
  errors: ['MATCHMAKER_LOBBY_STOPPED', 'API_BODY_TOO_LARGE'],
})

export const getLobbyState = operation({
  id: 'lobbies.getState',
  service: 'matchmaker',
  method: 'GET',
  path: '/matchmaker/lobbies/{lobby_id}/state',
  aliases: ['/v1/lobbies/{lobby_id}/state'],
  summary: 'What a lobby of the same namespace tells of itself; null when nothing.',
  auth: ['lobby', 'namespace', 'development'],
  rate_limit: 'matchmaker',
  params: object({ lobby_id: Id }),
  response: Type.Unknown(),
  errors: ['MATCHMAKER_LOBBY_NOT_FOUND'],
})

const game_mode_names = {
  game_mode_id: Type.String({
    format: 'uuid',
    description: 'Id of the game mode: a UUIDv5 of its name within its game, the same for every version.',
  }),
  game_mode_name_id: Type.String({ description: 'Name of the game mode in the version config.' }),
}

export const GameModeInfo = object(game_mode_names)

export const LobbyInfo = object({
  region_id: Identifier,
  ...game_mode_names,
  lobby_id: Id,
  max_players_normal: Type.Integer(),
  max_players_direct: Type.Integer(),
  max_players_party: Type.Integer(),
  total_player_count: Type.Integer({ description: 'Seats that are taken: reserved and connected.' }),
  is_stalled: Type.Optional(
    Type.Boolean({ description: 'True while its server does not answer and nobody may join; else absent.' }),
  ),
  state: Type.Optional(Type.Unknown()),
})

export const listLobbies = operation({
  id: 'lobbies.list',
  service: 'matchmaker',
  method: 'GET',
  path: '/matchmaker/lobbies/list',
  aliases: ['/v1/lobbies/list'],
  summary:
    'The public lobbies of the current version that somebody is in, oldest first, with its game modes and regions.',
  auth: ['namespace', 'development'],
  rate_limit: 'matchmaker',
  query: object({
    include_state: Type.Optional(Type.Boolean()),
    anchor: Type.Optional(Type.String({ format: 'uuid', description: 'The `anchor` of the page before.' })),
  }),
  response: object({
    game_modes: Type.Array(GameModeInfo),
    regions: RegionInfos,
    lobbies: Type.Array(LobbyInfo, {
      description:
        'A page of at most 256. A lobby that nobody is in is there when it is the only one of its game mode.',
    }),
    anchor: Type.Optional(Type.String({ description: 'Present when there are more.' })),
  }),
})
