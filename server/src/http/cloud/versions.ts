import { createGameVersion, getGameVersionById, reserveVersionName, validateGameVersion } from '@muster/contract'
import * as cloud from '../../cloud/versions/versions.ts'
import { implement } from '../implement.ts'

export const versions = [
  implement(createGameVersion, ({ ctx, caller, params, body }) =>
    cloud.createVersion(ctx, caller, params.game_id, body),
  ),
  implement(validateGameVersion, async ({ ctx, caller, params, body, placeErrors }) => ({
    errors: placeErrors(await cloud.validateVersion(ctx, caller, params.game_id, body)),
  })),
  implement(reserveVersionName, async ({ ctx, caller, params }) => ({
    version_display_name: await cloud.reserveName(ctx, caller, params.game_id),
  })),
  implement(getGameVersionById, async ({ ctx, caller, params }) => ({
    version: await cloud.findVersion(ctx, caller, params.game_id, params.version_id),
  })),
]
