import { playerConnected, playerDisconnected } from '@muster/contract'
import { connectPlayer, disconnectPlayer } from '../../matchmaker/players.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'
import { requireKind } from './lobbies.ts'

export const players = (matchmaker: Matchmaker): Implementation[] => [
  implement(playerConnected, ({ caller, body, idempotency_key }) =>
    connectPlayer(matchmaker.desk(), requireKind(caller, 'lobby'), body.player_token, idempotency_key),
  ),
  implement(playerDisconnected, ({ caller, body, idempotency_key }) =>
    disconnectPlayer(matchmaker.desk(), requireKind(caller, 'lobby'), body.player_token, idempotency_key),
  ),
]
