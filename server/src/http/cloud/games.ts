import { createCloudToken, createGame, exportGame, getGameById, getGames, validateGame } from '@musterhost/contract'
import { exportGame as exportWholeGame } from '../../cloud/games/export.ts'
import * as cloud from '../../cloud/games/games.ts'
import * as tokens from '../../cloud/tokens/tokens.ts'
import { type Implementation, implement } from '../implement.ts'
import type { WatchedRecords } from '../watched-records.ts'

export const games = (records: WatchedRecords): Implementation[] => [
  implement(createGame, ({ ctx, caller, body }) => cloud.createGame(ctx, caller, body)),
  implement(validateGame, async ({ ctx, body }) => ({ errors: await cloud.checkGame(ctx, body) })),
  implement(getGames, (request) => records.respond(request, () => cloud.listGames(request.ctx, request.caller))),
  implement(getGameById, (request) => {
    const { ctx, caller, params } = request
    return records.respond(
      request,
      async () => ({ game: await cloud.findGame(ctx, caller, params.game_id) }),
      ({ game }) => game.namespaces.map(({ namespace_id }) => namespace_id),
    )
  }),
  implement(exportGame, ({ ctx, caller, params }) => exportWholeGame(ctx, caller, params.game_id)),
  implement(createCloudToken, ({ ctx, caller, params, body }) =>
    tokens.createCloudToken(ctx, caller, { game_id: params.game_id, lifetime_ms: body?.ttl, name: body?.name }),
  ),
]
