import {
  createGameNamespaceTokenDevelopment,
  listGameCloudTokens,
  listGameNamespaceTokensDevelopment,
  listGameNamespaceTokensPublic,
  revokeGameCloudToken,
  revokeGameNamespaceTokenDevelopment,
  revokeGameNamespaceTokenPublic,
  revokeToken,
  validateGameNamespaceTokenDevelopment,
} from '@muster/contract'
import * as development from '../../cloud/namespaces/development.ts'
import * as cloud from '../../cloud/tokens.ts'
import { implement } from '../implement.ts'

export const tokens = [
  implement(listGameCloudTokens, ({ ctx, caller, params }) =>
    cloud.listTokens(ctx, caller, { kind: 'cloud', ...params }),
  ),
  implement(revokeGameCloudToken, async ({ ctx, caller, params: { token_id, ...game } }) => {
    await cloud.revokeToken(ctx, caller, { kind: 'cloud', ...game }, token_id)
    return {}
  }),
  implement(listGameNamespaceTokensPublic, ({ ctx, caller, params }) =>
    cloud.listTokens(ctx, caller, { kind: 'public', ...params }),
  ),
  implement(revokeGameNamespaceTokenPublic, async ({ ctx, caller, params: { token_id, ...namespace } }) => {
    await cloud.revokeToken(ctx, caller, { kind: 'public', ...namespace }, token_id)
    return {}
  }),
  implement(createGameNamespaceTokenDevelopment, ({ ctx, caller, params, body }) =>
    development.createDevelopmentToken(ctx, caller, params, body),
  ),
  implement(validateGameNamespaceTokenDevelopment, async ({ ctx, caller, params, body }) => ({
    errors: await development.validateDevelopmentToken(ctx, caller, params, body),
  })),
  implement(listGameNamespaceTokensDevelopment, ({ ctx, caller, params }) =>
    cloud.listTokens(ctx, caller, { kind: 'development', ...params }),
  ),
  implement(revokeGameNamespaceTokenDevelopment, async ({ ctx, caller, params: { token_id, ...namespace } }) => {
    await cloud.revokeToken(ctx, caller, { kind: 'development', ...namespace }, token_id)
    return {}
  }),
  implement(revokeToken, async ({ ctx, params }) => {
    await cloud.revokeById(ctx, params.token_id)
    return {}
  }),
]
