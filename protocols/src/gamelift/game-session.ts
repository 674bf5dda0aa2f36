// A lobby in the words of GameLift: one game session, whose player sessions are the seats.
import { RequestError } from '../http-body.ts'
import type { LobbyFacts, LobbySeat } from '../lobby.ts'
import { teamsOf } from '../teams.ts'

export const PLAYER_SESSION_PREFIX = 'psess-'
const PAGE_SIZE_MAX = 1_024
const PAGE_SIZE_DEFAULT = 50
const STATUSES = ['RESERVED', 'ACTIVE', 'COMPLETED', 'TIMEDOUT'] as const
type Status = (typeof STATUSES)[number]

type PlayerSession = {
  PlayerId: string
  PlayerSessionId: string
  GameSessionId: string
  FleetId: string
  PlayerData: string
  IpAddress: string
  Port: number
  /** In milliseconds since 1970. */
  CreationTime: number
  TerminationTime: number
  DnsName: string
  Status: Status
}

/** `player_session_id`: an id that the server knows instead of the one made of the player id. */
export type PlayerSessionQuery = {
  player_id: string | null
  player_session_id: string | null
  status: string | null
  limit: number | null
  next_token: string | null
}

export function fleetId({ version_id }: LobbyFacts): string {
  return `fleet-${version_id}`
}

export function gameSessionId(facts: LobbyFacts): string {
  return `arn:aws:gamelift:${facts.region_id}::gamesession/${fleetId(facts)}/${facts.lobby_id}`
}

/** The members of CreateGameSession. */
export function createGameSession(facts: LobbyFacts, seats: readonly LobbySeat[]) {
  return {
    GameSessionId: gameSessionId(facts),
    GameSessionName: facts.lobby_id,
    GameSessionData: facts.config === null ? '' : JSON.stringify(facts.config),
    MatchmakerData: matchmakerData(facts, seats),
    MaximumPlayerSessionCount: facts.max_players,
    ...addressOf(facts),
    GameProperties: { ...facts.tags },
  }
}

/** The game session of UpdateGameSession. */
export function gameSession(facts: LobbyFacts, seats: readonly LobbySeat[]) {
  const { GameSessionName, ...members } = createGameSession(facts, seats)
  return { ...members, Name: GameSessionName, FleetId: fleetId(facts), Status: 'ACTIVE' }
}

/**
 * What GameLift's matchmaker writes about a match, as JSON text. Empty when no seat came from rules: games take any text for
 * a match with teams.
 */
function matchmakerData(facts: LobbyFacts, seats: readonly LobbySeat[]): string {
  const players = seats.filter(({ role }) => role !== 'spectator')
  if (!players.some(({ team, attributes }) => team !== undefined || attributes !== undefined)) return ''
  const teams = teamsOf(players, 'players')
  return JSON.stringify({
    matchId: facts.lobby_id,
    matchmakingConfigurationArn: `arn:aws:gamelift:${facts.region_id}::matchmakingconfiguration/${facts.game_mode}`,
    teams: [...teams].map(([name, members]) => ({
      name,
      players: members.map((seat) => ({ playerId: seat.player_id, attributes: attributesOf(seat) })),
    })),
  })
}

function attributesOf({ attributes = {} }: LobbySeat) {
  const typed = Object.entries(attributes).map(([name, value]) => {
    const type = typeof value === 'number' ? 'DOUBLE' : typeof value === 'string' ? 'STRING' : 'STRING_LIST'
    return [name, { attributeType: type, valueAttribute: value }]
  })
  return Object.fromEntries(typed)
}

function addressOf({ ports }: LobbyFacts): { IpAddress: string; DnsName: string; Port: number } {
  const { hostname = '', port = null } = ports[0]?.public ?? {}
  return { IpAddress: hostname, DnsName: hostname, Port: port ?? 0 }
}

/** One page of the seats that the query asks for. Throws a RequestError that names the member. */
export function describePlayerSessions(
  facts: LobbyFacts,
  seats: readonly LobbySeat[],
  query: PlayerSessionQuery,
): { PlayerSessions: PlayerSession[]; NextToken?: string } {
  const status = STATUSES.find((one) => one === query.status)
  if (query.status !== null && status === undefined) {
    throw new RequestError(400, `PlayerSessionStatusFilter is one of: ${STATUSES.join(', ')}.`)
  }
  const limit = query.limit ?? PAGE_SIZE_DEFAULT
  if (!Number.isInteger(limit) || limit < 1) throw new RequestError(400, 'Limit is a whole number of at least 1.')
  const from = query.next_token === null ? 0 : Number(query.next_token)
  if (!Number.isInteger(from) || from < 0) throw new RequestError(400, 'NextToken is not one of a response.')
  const found = seats
    .filter(({ player_id }) => query.player_id === null || player_id === query.player_id)
    .map((seat) => playerSession(facts, seat, query.player_session_id))
    .filter((session) => status === undefined || session.Status === status)
  const to = from + Math.min(limit, PAGE_SIZE_MAX)
  return { PlayerSessions: found.slice(from, to), ...(to < found.length ? { NextToken: String(to) } : {}) }
}

function playerSession(facts: LobbyFacts, seat: LobbySeat, player_session_id: string | null): PlayerSession {
  return {
    PlayerId: seat.player_id,
    PlayerSessionId: player_session_id ?? `${PLAYER_SESSION_PREFIX}${seat.player_id}`,
    GameSessionId: gameSessionId(facts),
    FleetId: fleetId(facts),
    PlayerData: seat.attributes === undefined ? '' : JSON.stringify(seat.attributes),
    ...addressOf(facts),
    CreationTime: seat.create_ts,
    TerminationTime: 0,
    Status: seat.is_connected ? 'ACTIVE' : 'RESERVED',
  }
}
