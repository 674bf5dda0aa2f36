import { createGameBuild, listGameBuilds } from '@musterhost/contract'
import * as cloud from '../../cloud/uploads/builds.ts'
import { implement } from '../implement.ts'

export const builds = [
  implement(createGameBuild, ({ ctx, caller, params, body }) => cloud.createBuild(ctx, caller, params.game_id, body)),
  implement(listGameBuilds, ({ ctx, caller, params, query }) => cloud.listBuilds(ctx, caller, params.game_id, query)),
]
