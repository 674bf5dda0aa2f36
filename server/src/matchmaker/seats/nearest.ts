// Regions by the latencies that a client measured to them, else by their distance from the client on a sphere, an estimate of
// how far packets travel. Without the client's coordinates all distances are equal, and names decide.
import type { Coordinates } from '../../addresses/ip-intelligence.ts'
import type { Region } from '../../config/regions.ts'

/** Kilometres (IUGG mean radius). */
const EARTH_RADIUS_KM = 6_371.008_8

export type RegionDistance = { region: Region; kilometers: number }

/** The nearest first; equal distances by name. All distances are 0 when `client` is null. */
export function byDistance(regions: readonly Region[], client: Coordinates | null): RegionDistance[] {
  return regions
    .map((region) => ({ region, kilometers: client === null ? 0 : distanceKm(region, client) }))
    .sort((a, b) => a.kilometers - b.kilometers || (a.region.name < b.region.name ? -1 : 1))
}

/** The least latency first, then regions without one by their distance. Equal latencies by distance too. */
export function byLatency(
  regions: readonly Region[],
  latencies_ms: ReadonlyMap<string, number>,
  client: Coordinates | null,
): Region[] {
  const latencyOf = ({ name }: Region): number => latencies_ms.get(name) ?? Number.MAX_VALUE
  // The sort is stable.
  return byDistance(regions, client)
    .map(({ region }) => region)
    .sort((a, b) => latencyOf(a) - latencyOf(b))
}

/** Along a great circle, by the haversine formula, which is exact for close points. */
function distanceKm(from: Coordinates, to: Coordinates): number {
  const latitude = radians(to.latitude - from.latitude)
  const longitude = radians(to.longitude - from.longitude)
  const haversine =
    Math.sin(latitude / 2) ** 2 +
    Math.cos(radians(from.latitude)) * Math.cos(radians(to.latitude)) * Math.sin(longitude / 2) ** 2
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.min(1, Math.sqrt(haversine)))
}

function radians(degrees: number): number {
  return (degrees * Math.PI) / 180
}
