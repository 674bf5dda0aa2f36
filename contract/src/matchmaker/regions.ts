// Regions, as a player's client reads them: where lobbies run, and how far away that is.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { object } from '../records.ts'

export const RegionInfo = object(
  {
    region_id: Type.String({
      minLength: 1,
      maxLength: 64,
      description: 'Name of the region, as version configs and find use it. Example: `frankfurt`.',
    }),
    provider_display_name: Type.String({ description: 'Name of the hosting provider, for people.' }),
    region_display_name: Type.String({ description: 'Name of the region, for people. Example: `Frankfurt`.' }),
    datacenter_coord: object(
      {
        latitude: Type.Number({ description: 'Latitude in degrees, north positive.' }),
        longitude: Type.Number({ description: 'Longitude in degrees, east positive.' }),
      },
      'Location of the region.',
    ),
    datacenter_distance_from_client: object(
      {
        kilometers: Type.Number({ description: 'Distance in kilometers.' }),
        miles: Type.Number({ description: 'Distance in miles.' }),
      },
      'Great-circle distance from the client to the region; 0 when the location of the client is unknown.',
    ),
  },
  'A region, as seen from the client.',
)

export const RegionInfos = Type.Array(RegionInfo, {
  description:
    'Regions in which a game mode of the deployed version runs, nearest first. Sorted by name when the location of the client is unknown.',
})

export const listRegions = operation({
  id: 'regions.list',
  service: 'matchmaker',
  method: 'GET',
  path: '/matchmaker/regions',
  summary:
    'Lists the regions of the deployed version, best for this client first. Find without `regions` starts new lobbies in the first one.',
  auth: ['namespace', 'development'],
  rate_limit: 'matchmaker',
  response: object({ regions: RegionInfos }),
})
