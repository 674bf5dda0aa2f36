import { createCloudToken, createGame, getGameById, getGames, validateGame } from '@muster/contract'
import * as cloud from '../../cloud/games/games.ts'
import * as tokens from '../../cloud/tokens.ts'
import { implement } from '../implement.ts'

export const games = [
  implement(createGame, ({ ctx, caller, body }) => cloud.createGame(ctx, caller, body)),
  implement(validateGame, async ({ ctx, body }) => ({ errors: await cloud.checkGame(ctx, body) })),
  implement(getGames, ({ ctx, caller }) => cloud.listGames(ctx, caller)),
  implement(getGameById, async ({ ctx, caller, params }) => ({
    game: await cloud.findGame(ctx, caller, params.game_id),
  })),
  implement(createCloudToken, ({ ctx, caller, params }) => tokens.createCloudToken(ctx, caller, params.game_id)),
]
