import {
  listGameCloudTokens,
  listGameNamespaceTokensPublic,
  revokeGameCloudToken,
  revokeGameNamespaceTokenPublic,
  revokeToken,
} from '@musterhost/contract'
import * as cloud from '../../cloud/tokens/tokens.ts'
import { implement } from '../implement.ts'

export const tokens = [
  implement(listGameCloudTokens, ({ ctx, caller, params, query }) =>
    cloud.listTokens(ctx, caller, { kind: 'cloud', ...params }, query),
  ),
  implement(revokeGameCloudToken, async ({ ctx, caller, params: { token_id, ...game } }) => {
    await cloud.revokeToken(ctx, caller, { kind: 'cloud', ...game }, token_id)
    return {}
  }),
  implement(listGameNamespaceTokensPublic, ({ ctx, caller, params, query }) =>
    cloud.listTokens(ctx, caller, { kind: 'public', ...params }, query),
  ),
  implement(revokeGameNamespaceTokenPublic, async ({ ctx, caller, params: { token_id, ...namespace } }) => {
    await cloud.revokeToken(ctx, caller, { kind: 'public', ...namespace }, token_id)
    return {}
  }),
  implement(revokeToken, async ({ ctx, params }) => {
    await cloud.revokeById(ctx, params.token_id)
    return {}
  }),
]
