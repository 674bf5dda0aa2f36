import { getPlayerStatistics, playerConnected, playerDisconnected } from '@muster/contract'
import { developmentPlayer, developmentStatistics } from '../../matchmaker/calls/development.ts'
import { connectPlayer, disconnectPlayer } from '../../matchmaker/calls/players.ts'
import { playerStatistics } from '../../matchmaker/calls/statistics.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'
import { requireKind } from './lobbies.ts'

export const players = (matchmaker: Matchmaker): Implementation[] => [
  implement(playerConnected, ({ caller, body, idempotency_key }) =>
    caller.kind === 'development'
      ? developmentPlayer(matchmaker.desk(), caller, body.player_token)
      : connectPlayer(matchmaker.desk(), requireKind(caller, 'lobby'), body.player_token, idempotency_key),
  ),
  implement(playerDisconnected, ({ caller, body, idempotency_key }) =>
    caller.kind === 'development'
      ? developmentPlayer(matchmaker.desk(), caller, body.player_token)
      : disconnectPlayer(matchmaker.desk(), requireKind(caller, 'lobby'), body, idempotency_key),
  ),
  implement(getPlayerStatistics, ({ caller, query }) =>
    caller.kind === 'development'
      ? developmentStatistics(matchmaker.desk(), caller)
      : playerStatistics(matchmaker.desk(), requireKind(caller, 'namespace').namespace_id, query),
  ),
]
