import {
  createGameNamespaceTokenDevelopment,
  listGameNamespaceTokensDevelopment,
  revokeGameNamespaceTokenDevelopment,
  validateGameNamespaceTokenDevelopment,
} from '@musterhost/contract'
import * as cloud from '../../cloud/namespaces/development.ts'
import * as tokens from '../../cloud/tokens/tokens.ts'
import { implement } from '../implement.ts'

export const development = [
  implement(createGameNamespaceTokenDevelopment, ({ ctx, caller, params, body }) =>
    cloud.createDevelopmentToken(ctx, caller, params, body),
  ),
  implement(validateGameNamespaceTokenDevelopment, async ({ ctx, caller, params, body }) => ({
    errors: await cloud.validateDevelopmentToken(ctx, caller, params, body),
  })),
  implement(listGameNamespaceTokensDevelopment, ({ ctx, caller, params, query }) =>
    tokens.listTokens(ctx, caller, { kind: 'development', ...params }, query),
  ),
  implement(revokeGameNamespaceTokenDevelopment, ({ ctx, caller, params: { token_id, ...namespace } }) =>
    tokens.revokeToken(ctx, caller, { kind: 'development', ...namespace }, token_id),
  ),
]
