// Region tiers: the sizes of lobbies.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { object } from '../records.ts'

export const RegionTier = object(
  {
    tier_name_id: Type.String({ description: 'Name of the tier in version configs. Example: `basic-1d1`.' }),
    platform_cores_numerator: Type.Integer({
      description: 'Cores of a lobby are this number divided by `platform_cores_denominator`.',
    }),
    platform_cores_denominator: Type.Integer({
      description: 'Divisor of `platform_cores_numerator`. Example: 1 and 8 are an eighth of a core.',
    }),
    cpu: Type.Integer({ description: 'Processor frequency in MHz.' }),
    memory: Type.Integer({ description: 'Memory of a lobby in MB.' }),
    disk: Type.Integer({ description: 'Disk space of a lobby in MB.' }),
    bandwidth: Type.Integer({
      description:
        'Bandwidth of a lobby in each direction, in MB an hour. Enforced as a rate where lobbies have a network of their own.',
    }),
  },
  'Resources of a lobby.',
)

export const getRegionTiers = operation({
  id: 'tiers.getRegionTiers',
  service: 'api',
  method: 'GET',
  path: '/cloud/region-tiers',
  summary: 'Lists the available tiers, largest first.',
  auth: ['anyone'],
  rate_limit: 'cloud',
  response: object({ tiers: Type.Array(RegionTier, { description: 'The tiers, largest first.' }) }),
})
