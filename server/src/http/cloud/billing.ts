import { getUsage } from '@musterhost/contract'
import { findUsage } from '../../cloud/billing.ts'
import { implement } from '../implement.ts'

export const billing = [
  implement(getUsage, ({ ctx, caller, params, query }) => findUsage(ctx, caller, params.group_id, query)),
]
