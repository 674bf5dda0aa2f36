import {
  renameGame,
  renameGameBuild,
  renameGameCdnSite,
  renameGameNamespace,
  renameGameVersion,
} from '@musterhost/contract'
import * as cloud from '../../cloud/records/renaming.ts'
import { implement } from '../implement.ts'

export const renaming = [
  implement(renameGame, ({ ctx, caller, params, body }) =>
    cloud.renameGame(ctx, caller, params.game_id, body.display_name),
  ),
  implement(renameGameNamespace, async ({ ctx, caller, params, body }) => {
    const record = { game_id: params.game_id, id: params.namespace_id }
    await cloud.renameRecord(ctx, caller, 'namespaces', record, body.display_name)
  }),
  implement(renameGameVersion, async ({ ctx, caller, params, body }) => {
    const record = { game_id: params.game_id, id: params.version_id }
    await cloud.renameRecord(ctx, caller, 'versions', record, body.display_name)
  }),
  implement(renameGameBuild, async ({ ctx, caller, params, body }) => {
    const record = { game_id: params.game_id, id: params.build_id }
    await cloud.renameRecord(ctx, caller, 'builds', record, body.display_name)
  }),
  implement(renameGameCdnSite, async ({ ctx, caller, params, body }) => {
    const record = { game_id: params.game_id, id: params.site_id }
    await cloud.renameRecord(ctx, caller, 'sites', record, body.display_name)
  }),
]
