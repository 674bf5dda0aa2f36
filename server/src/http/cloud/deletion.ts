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
  implement(deleteGroup, async ({ ctx, caller, params }) => {
    await cloud.deleteGroup(ctx, caller, params.group_id)
    return {}
  }),
  implement(deleteGame, async ({ ctx, caller, params }) => {
    await cloud.deleteGame(ctx, caller, params.game_id)
    return {}
  }),
  implement(deleteGameNamespace, async ({ ctx, caller, params }) => {
    await cloud.deleteNamespace(ctx, caller, params.game_id, params.namespace_id)
    return {}
  }),
  implement(deleteGameVersion, async ({ ctx, caller, params }) => {
    await cloud.deleteVersion(ctx, caller, params.game_id, params.version_id)
    return {}
  }),
  implement(deleteGameBuild, async ({ ctx, caller, params }) => {
    await cloud.deleteBuild(ctx, caller, params.game_id, params.build_id)
    return {}
  }),
  implement(deleteGameCdnSite, async ({ ctx, caller, params }) => {
    await cloud.deleteSite(ctx, caller, params.game_id, params.site_id)
    return {}
  }),
]
