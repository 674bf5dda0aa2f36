import { getPlayerStatistics, playerConnected, playerDisconnected } from '@musterhost/contract'
import { developmentPlayer, developmentStatistics } from '../../matchmaker/calls/development.ts'
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
    development: async ({ caller, body }) => {
      await developmentPlayer(context(), caller, body.player_token)
      return {}
    },
  }),
  implement(getPlayerStatistics, {
    namespace: ({ caller, query }) => playerStatistics(context(), caller.namespace_id, query),
    development: ({ caller }) => developmentStatistics(context(), caller),
  }),
]
