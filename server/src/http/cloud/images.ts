import {
  gameBannerUploadComplete,
  gameBannerUploadPrepare,
  gameLogoUploadComplete,
  gameLogoUploadPrepare,
} from '@musterhost/contract'
import * as cloud from '../../cloud/games/images.ts'
import { implement } from '../implement.ts'

export const images = [
  implement(gameLogoUploadPrepare, ({ ctx, caller, params, body }) =>
    cloud.prepareImage(ctx, caller, params.game_id, 'logo', body),
  ),
  implement(gameLogoUploadComplete, ({ ctx, caller, params }) => cloud.completeImage(ctx, caller, params, 'logo')),
  implement(gameBannerUploadPrepare, ({ ctx, caller, params, body }) =>
    cloud.prepareImage(ctx, caller, params.game_id, 'banner', body),
  ),
  implement(gameBannerUploadComplete, ({ ctx, caller, params }) => cloud.completeImage(ctx, caller, params, 'banner')),
]
