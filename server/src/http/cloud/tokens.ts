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
  implement(revokeGameCloudToken, ({ ctx, caller, params: { token_id, ...game } }) =>
    cloud.revokeToken(ctx, caller, { kind: 'cloud', ...game }, token_id),
  ),
  implement(listGameNamespaceTokensPublic, ({ ctx, caller, params, query }) =>
    cloud.listTokens(ctx, caller, { kind: 'public', ...params }, query),
  ),
  implement(revokeGameNamespaceTokenPublic, ({ ctx, caller, params: { token_id, ...namespace } }) =>
    cloud.revokeToken(ctx, caller, { kind: 'public', ...namespace }, token_id),
  ),
  implement(revokeToken, ({ ctx, params }) => cloud.revokeById(ctx, params.token_id)),
]
