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
  implement(setNamespaceCdnAuthType, async ({ ctx, caller, params, body }) => {
    await cloud.setAuthType(ctx, caller, params, body.auth_type)
    return {}
  }),
  implement(updateNamespaceCdnAuthUser, async ({ ctx, caller, params, body }) => {
    await cloud.setAuthUser(ctx, caller, params, body)
    return {}
  }),
  implement(removeNamespaceCdnAuthUser, async ({ ctx, caller, params }) => {
    await cloud.removeAuthUser(ctx, caller, params, params.user)
    return {}
  }),
  implement(toggleNamespaceDomainPublicAuth, async ({ ctx, caller, params, body }) => {
    await cloud.setDomainPublicAuth(ctx, caller, params, body.enabled)
    return {}
  }),
]
