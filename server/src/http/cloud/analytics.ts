import { getAnalytics } from '@muster/contract'
import type { Turns } from '../../cloud/analytics/turns.ts'
import { tellAnalytics } from '../../cloud/analytics.ts'
import { type Implementation, implement } from '../implement.ts'

export const analytics = (turns: Turns): Implementation[] => [
  implement(getAnalytics, async ({ ctx, caller, query, isGone }) => ({
    data_sets: await tellAnalytics(ctx, caller, query, (read) => turns.take(read, isGone)),
  })),
]
