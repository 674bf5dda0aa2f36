import {
  deleteGame,
  deleteGameBuild,
  deleteGameCdnSite,
  deleteGameNamespace,
  deleteGameVersion,
  deleteGroup,
} from '@musterhost/contract'
import * as cloud from '../../cloud/records/deletion.ts'
import { implement } from '../implement.ts'

export const deletion = [
  implement(deleteGroup, ({ ctx, caller, params }) => cloud.deleteGroup(ctx, caller, params.group_id)),
  implement(deleteGame, ({ ctx, caller, params }) => cloud.deleteGame(ctx, caller, params.game_id)),
  implement(deleteGameNamespace, ({ ctx, caller, params }) =>
    cloud.deleteNamespace(ctx, caller, params.game_id, params.namespace_id),
  ),
  implement(deleteGameVersion, ({ ctx, caller, params }) =>
    cloud.deleteVersion(ctx, caller, params.game_id, params.version_id),
  ),
  implement(deleteGameBuild, ({ ctx, caller, params }) =>
    cloud.deleteBuild(ctx, caller, params.game_id, params.build_id),
  ),
  implement(deleteGameCdnSite, ({ ctx, caller, params }) =>
    cloud.deleteSite(ctx, caller, params.game_id, params.site_id),
  ),
]
