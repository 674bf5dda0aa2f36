import {
  getGameNamespaceVersionHistoryList,
  removeNamespaceCdnAuthUser,
  setNamespaceCdnAuthType,
  toggleNamespaceDomainPublicAuth,
  updateNamespaceCdnAuthUser,
} from '@musterhost/contract'
import * as cloud from '../../cloud/namespaces/cdn.ts'
import { listDeploys } from '../../cloud/namespaces/deploys.ts'
import { implement } from '../implement.ts'

export const namespaceCdn = [
  implement(getGameNamespaceVersionHistoryList, ({ ctx, caller, params, query }) =>
    listDeploys(ctx, caller, params, query),
  ),
  implement(setNamespaceCdnAuthType, ({ ctx, caller, params, body }) =>
    cloud.setAuthType(ctx, caller, params, body.auth_type),
  ),
  implement(updateNamespaceCdnAuthUser, ({ ctx, caller, params, body }) =>
    cloud.setAuthUser(ctx, caller, params, body),
  ),
  implement(removeNamespaceCdnAuthUser, ({ ctx, caller, params }) =>
    cloud.removeAuthUser(ctx, caller, params, params.user),
  ),
  implement(toggleNamespaceDomainPublicAuth, ({ ctx, caller, params, body }) =>
    cloud.setDomainPublicAuth(ctx, caller, params, body.enabled),
  ),
]
