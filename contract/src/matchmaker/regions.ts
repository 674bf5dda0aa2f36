// Regions, as a player's client knows them: where a lobby may be, and how far that is from him.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { object } from '../records.ts'

export const RegionInfo = object({
  region_id: Type.String({ minLength: 1, maxLength: 64 }),
  provider_display_name: Type.String(),
  region_display_name: Type.String(),
  datacenter_coord: object({ latitude: Type.Number(), longitude: Type.Number() }),
  datacenter_distance_from_client: object(
    { kilometers: Type.Number(), miles: Type.Number() },
    'Along a great circle; 0 when nobody knows where the client is.',
  ),
})

export const RegionInfos = Type.Array(RegionInfo, {
  description:
    'Those that a game mode of the current version runs in, the nearest first; by name when nobody knows where the client is.',
})

export const listRegions = operation({
  id: 'regions.list',
  service: 'matchmaker',
  method: 'GET',
  path: '/matchmaker/regions',
  summary:
    'The regions of the current version, the best for this client first: there find starts a lobby when it is not told where.',
  auth: ['namespace', 'development'],
  rate_limit: 'matchmaker',
  response: object({ regions: RegionInfos }),
})
