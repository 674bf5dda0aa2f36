import { addNamespaceDomain, removeNamespaceDomain } from '@musterhost/contract'
import * as cloud from '../../cloud/domains/domains.ts'
import { implement } from '../implement.ts'

export const domains = [
  implement(addNamespaceDomain, ({ ctx, caller, params, body }) =>
    cloud.addDomain(ctx, caller, params.game_id, params.namespace_id, body.domain),
  ),
  implement(removeNamespaceDomain, ({ ctx, caller, params }) =>
    cloud.removeDomain(ctx, caller, params.game_id, params.namespace_id, params.domain),
  ),
]
