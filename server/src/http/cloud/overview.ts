import { getOverview } from '@musterhost/contract'
import * as cloud from '../../cloud/overview/overview.ts'
import { type Implementation, implement } from '../implement.ts'

export const overview: Implementation[] = [
  implement(getOverview, ({ ctx, caller, query }) => cloud.tellOverview(ctx, caller, query)),
]
