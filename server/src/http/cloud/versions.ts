import {
  createGameVersion,
  getGameVersionById,
  listGameVersions,
  reserveVersionName,
  validateGameVersion,
} from '@musterhost/contract'
import * as cloud from '../../cloud/versions/versions.ts'
import { implement } from '../implement.ts'

export const versions = [
  implement(createGameVersion, async ({ ctx, caller, params, body, locateErrors }) => {
    const { version_id, warnings } = await cloud.createVersion(ctx, caller, params.game_id, body)
    return { version_id, warnings: locateErrors(warnings) }
  }),
  implement(validateGameVersion, async ({ ctx, caller, params, body, locateErrors }) => {
    const { errors, warnings } = await cloud.validateVersion(ctx, caller, params.game_id, body)
    return { errors: locateErrors(errors), warnings: locateErrors(warnings) }
  }),
  implement(reserveVersionName, async ({ ctx, caller, params }) => ({
    version_display_name: await cloud.reserveName(ctx, caller, params.game_id),
  })),
  implement(listGameVersions, ({ ctx, caller, params, query }) =>
    cloud.listVersionPage(ctx, caller, params.game_id, query),
  ),
  implement(getGameVersionById, async ({ ctx, caller, params }) => ({
    version: await cloud.findVersion(ctx, caller, params.game_id, params.version_id),
  })),
]
