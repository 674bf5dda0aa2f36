import { createGameCdnSite, listGameCdnSites } from '@musterhost/contract'
import * as cloud from '../../cloud/uploads/sites.ts'
import { implement } from '../implement.ts'

export const sites = [
  implement(createGameCdnSite, ({ ctx, caller, params, body }) => cloud.createSite(ctx, caller, params.game_id, body)),
  implement(listGameCdnSites, ({ ctx, caller, params, query }) => cloud.listSites(ctx, caller, params.game_id, query)),
]
