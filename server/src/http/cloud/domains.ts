import { addNamespaceDomain, removeNamespaceDomain } from '@musterhost/contract'
import * as cloud from '../../cloud/domains/domains.ts'
import { implement } from '../implement.ts'

export const domains = [
  implement(addNamespaceDomain, async ({ ctx, caller, params, body }) => {
    await cloud.addDomain(ctx, caller, params.game_id, params.namespace_id, body.domain)
    return {}
  }),
  implement(removeNamespaceDomain, async ({ ctx, caller, params }) => {
    await cloud.removeDomain(ctx, caller, params.game_id, params.namespace_id, params.domain)
    return {}
  }),
]
