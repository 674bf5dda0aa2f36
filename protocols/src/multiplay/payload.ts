// What a server learns of its allocation: the result of the matchmaker, and the configuration of a custom lobby.
import { createHmac } from 'node:crypto'
import { asRecord } from '../http-body.ts'
import type { LobbyFacts, LobbyView } from '../lobby.ts'
import { teamsOf } from '../teams.ts'

/** The team of players whose game mode has no teams. */
const ONE_TEAM = 'players'
const TOKEN_SECONDS = 3_600

/** Members of a configuration that is an object stand beside those of the match, and win: games read their own payload. */
export function payload(facts: LobbyFacts, { seats }: LobbyView): object {
  const players = seats.filter(({ role }) => role !== 'spectator')
  const teams = teamsOf(players, ONE_TEAM)
  const match = {
    MatchId: facts.lobby_id,
    EnvironmentId: facts.namespace_id,
    QueueName: facts.game_mode,
    PoolName: facts.game_mode,
    GeneratorName: '',
    FunctionName: '',
    BackfillTicketId: '',
    MatchProperties: {
      Region: facts.region_id,
      BackfillTicketId: '',
      Teams: [...teams].map(([name, members]) => ({
        TeamName: name,
        TeamId: name,
        PlayerIds: members.map(({ player_id }) => player_id),
      })),
      Players: players.map(({ player_id, attributes }) => ({
        Id: player_id,
        CustomData: attributes ?? {},
        QosResults: [],
      })),
    },
  }
  const config = asRecord(facts.config)
  if (config !== null) return { ...match, ...config }
  return facts.config === null ? match : { ...match, config: facts.config }
}

/** A token that only this endpoint checks: SDKs send it back, and games read nothing from it. */
export function payloadToken({ lobby_id }: LobbyFacts, now_ms: number, secret: string): string {
  const issued = Math.floor(now_ms / 1_000)
  const claims = { iss: 'muster', sub: lobby_id, iat: issued, exp: issued + TOKEN_SECONDS }
  const signed = [{ alg: 'HS256', typ: 'JWT' }, claims].map(encode).join('.')
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}
