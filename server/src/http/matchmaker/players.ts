import { getPlayerStatistics, listOwnSeats, playerConnected, playerDisconnected } from '@musterhost/contract'
import { developmentOwnSeats, developmentPlayer, developmentStatistics } from '../../matchmaker/calls/development.ts'
import { ownSeats } from '../../matchmaker/calls/own-seats.ts'
import { connectPlayer, disconnectPlayer } from '../../matchmaker/calls/players.ts'
import { playerStatistics } from '../../matchmaker/calls/statistics.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'

export const players = ({ context }: Matchmaker): Implementation[] => [
  implement(playerConnected, {
    lobby: ({ caller, body, idempotency_key: key, ray }) =>
      connectPlayer(context(), caller, body.player_token, { key, ray }),
    development: ({ caller, body }) => developmentPlayer(context(), caller, body.player_token),
  }),
  implement(playerDisconnected, {
    lobby: ({ caller, body, idempotency_key: key, ray }) => disconnectPlayer(context(), caller, body, { key, ray }),
    development: ({ caller, body }) => developmentPlayer(context(), caller, body.player_token),
  }),
  implement(listOwnSeats, {
    namespace: ({ caller, body }) => ownSeats(context(), caller, body),
    development: ({ caller }) => developmentOwnSeats(context(), caller),
  }),
  implement(getPlayerStatistics, {
    namespace: ({ caller, query }) => playerStatistics(context(), caller.namespace_id, query),
    development: ({ caller }) => developmentStatistics(context(), caller),
  }),
]
