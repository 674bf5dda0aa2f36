import { getRegionTiers } from '@musterhost/contract'
import { implement } from '../implement.ts'

export const tiers = [
  implement(getRegionTiers, ({ ctx }) => ({ tiers: ctx.config.tiers.map((tier) => ({ ...tier })) })),
]
