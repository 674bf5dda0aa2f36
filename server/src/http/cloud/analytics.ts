import { getAnalytics } from '@muster/contract'
import { tellAnalytics } from '../../cloud/analytics.ts'
import { implement } from '../implement.ts'

export const analytics = [
  implement(getAnalytics, async ({ ctx, caller, query }) => ({
    data_sets: await tellAnalytics(ctx, caller, query),
  })),
]
