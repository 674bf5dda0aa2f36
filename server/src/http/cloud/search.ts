import { searchGame } from '@musterhost/contract'
import * as game from '../../cloud/games/search.ts'
import { type Implementation, implement } from '../implement.ts'

export const search: Implementation[] = [
  implement(searchGame, ({ ctx, caller, params, query }) => game.search(ctx, caller, params.game_id, query.text)),
]
