// Regions, as a player's client reads them: where lobbies run, and how far away that is.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { object } from '../records.ts'

/** Regions of one record of latencies. */
const LATENCIES_MAX = 64
/** Milliseconds: longer than any measurement of the SDK lasts. */
const LATENCY_MS_MAX = 10_000

/** Latency from the client to regions, by their names. Regions that the platform does not have are ignored. */
export const Latencies = Type.Record(Type.String(), Type.Number({ minimum: 0, maximum: LATENCY_MS_MAX }), {
  additionalProperties: false,
  maxProperties: LATENCIES_MAX,
  description:
    'Round-trip times in milliseconds that the client measured to regions, by their names; `measureRegions()` of the SDK returns them. Other names are ignored. Example: `{"frankfurt": 24, "atlanta": 118}`.',
})

const PingAddress = object(
  {
    url: Type.String({
      description: 'Responds to `GET` with 204, to pages of every origin. Example: `https://fra-2.example.com/ping`.',
    }),
    udp: Type.Optional(
      Type.String({
        description:
          '`hostname:port` of the UDP echo. Absent when the edge has none. Example: `fra-2.example.com:25999`.',
      }),
    ),
  },
  'Address of an edge in the region, for measuring the latency to it.',
)

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
    ping_addresses: Type.Optional(
      Type.Array(PingAddress, {
        description:
          'Where the latency to the region is measured: the edges that players of its lobbies are sent to, at most 8. The latency of the region is that of the slowest of them. Empty when no edge stands in the region. Absent in lists of lobbies.',
      }),
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
