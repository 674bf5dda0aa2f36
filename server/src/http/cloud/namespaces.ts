import {
  createGameNamespace,
  createGameNamespaceTokenPublic,
  getGameNamespaceById,
  updateGameNamespaceExpiry,
  updateGameNamespaceMatchmakerConfig,
  updateGameNamespaceVersion,
  validateGameNamespace,
  validateGameNamespaceMatchmakerConfig,
} from '@musterhost/contract'
import { setExpiry } from '../../cloud/namespaces/expiry.ts'
import * as cloud from '../../cloud/namespaces/namespaces.ts'
import * as tokens from '../../cloud/tokens/tokens.ts'
import { implement } from '../implement.ts'

export const namespaces = [
  implement(createGameNamespace, ({ ctx, caller, params, body }) =>
    cloud.createNamespace(ctx, caller, params.game_id, body),
  ),
  implement(validateGameNamespace, async ({ ctx, caller, params, body }) => ({
    errors: await cloud.validateNamespace(ctx, caller, params.game_id, body),
  })),
  implement(getGameNamespaceById, async ({ ctx, caller, params }) => ({
    namespace: await cloud.findNamespace(ctx, caller, params.game_id, params.namespace_id),
  })),
  implement(updateGameNamespaceVersion, ({ ctx, caller, params, body }) =>
    cloud.setVersion(ctx, caller, params.game_id, params.namespace_id, body),
  ),
  implement(updateGameNamespaceExpiry, ({ ctx, caller, params, body }) => setExpiry(ctx, caller, params, body)),
  implement(updateGameNamespaceMatchmakerConfig, ({ ctx, caller, params, body }) =>
    cloud.setMatchmakerLimits(ctx, caller, params.game_id, params.namespace_id, body),
  ),
  implement(validateGameNamespaceMatchmakerConfig, async ({ ctx, caller, params, body }) => ({
    errors: await cloud.validateMatchmakerLimits(ctx, caller, params.game_id, params.namespace_id, body),
  })),
  implement(createGameNamespaceTokenPublic, ({ ctx, caller, params }) =>
    tokens.createPublicToken(ctx, caller, params.game_id, params.namespace_id),
  ),
]
