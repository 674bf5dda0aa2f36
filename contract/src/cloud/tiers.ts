// Region tiers: the sizes in which lobbies run.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { object } from '../records.ts'

export const RegionTier = object(
  {
    tier_name_id: Type.String({ description: 'Short human readable identifier.' }),
    platform_cores_numerator: Type.Integer({
      description: 'With the denominator, the portion of the CPU a server uses.',
    }),
    platform_cores_denominator: Type.Integer(),
    cpu: Type.Integer({ description: 'CPU frequency, MHz.' }),
    memory: Type.Integer({ description: 'Allocated memory, MB.' }),
    disk: Type.Integer({ description: 'Allocated disk, MB.' }),
    bandwidth: Type.Integer({ description: 'Internet bandwidth, MB.' }),
  },
  'What a lobby may use.',
)

export const getRegionTiers = operation({
  id: 'tiers.getRegionTiers',
  service: 'api',
  method: 'GET',
  path: '/cloud/region-tiers',
  summary: 'All available region tiers, the largest first.',
  auth: ['anyone'],
  rate_limit: 'cloud',
  response: object({ tiers: Type.Array(RegionTier) }),
})
