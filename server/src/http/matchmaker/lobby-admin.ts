import {
  checkMatchmakerVersion,
  deleteMatchmakerLobby,
  deleteMatchmakerLobbyPlayer,
  listMatchmakerLobbyPlayers,
  setMatchmakerVersionDraining,
} from '@musterhost/contract'
import { requireGame } from '../../cloud/access.ts'
import type { Context } from '../../context.ts'
import { drainVersion, playersOfLobby, removePlayer, stopLobby } from '../../matchmaker/calls/lobby-admin.ts'
import { checkVersion } from '../../matchmaker/calls/version-check.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'

export const lobbyAdmin = (ctx: Context, matchmaker: Matchmaker): Implementation[] => [
  implement(deleteMatchmakerLobby, async ({ ctx: { audit }, caller, params }) => {
    await requireGame(ctx, caller, params.game_id)
    return stopLobby({ ...matchmaker.context(), audit }, params)
  }),
  implement(listMatchmakerLobbyPlayers, async ({ caller, params }) => {
    await requireGame(ctx, caller, params.game_id)
    return playersOfLobby(matchmaker.context(), params)
  }),
  implement(deleteMatchmakerLobbyPlayer, async ({ ctx: { audit }, caller, params }) => {
    await requireGame(ctx, caller, params.game_id)
    return removePlayer({ ...matchmaker.context(), audit }, params)
  }),
  implement(setMatchmakerVersionDraining, async ({ ctx: { audit }, caller, params, body }) => {
    await requireGame(ctx, caller, params.game_id)
    return drainVersion({ ...matchmaker.context(), audit }, params, body.is_draining)
  }),
  implement(checkMatchmakerVersion, async ({ caller, params, body, ray_id, isGone, hangUpSignal }) => {
    await requireGame(ctx, caller, params.game_id)
    return checkVersion(matchmaker.context(), { ...params, ...body, ray_id, isGone, hangUpSignal })
  }),
]
