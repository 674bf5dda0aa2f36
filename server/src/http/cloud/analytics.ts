import { getAnalytics } from '@musterhost/contract'
import type { ReadLimit } from '../../analytics/read-limit.ts'
import { tellAnalytics } from '../../cloud/analytics.ts'
import { type Implementation, implement } from '../implement.ts'

export const analytics = (turns: ReadLimit): Implementation[] => [
  implement(getAnalytics, ({ ctx, caller, query, isGone }) =>
    tellAnalytics(ctx, caller, query, (read) => turns.take(read, isGone)),
  ),
]
