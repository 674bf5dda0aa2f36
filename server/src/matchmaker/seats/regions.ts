// The region of a new lobby: what the client measured, and where it is.
import { ApiError, type BodyOf, type findLobby, type GameModeConfig } from '@musterhost/contract'
import type { Coordinates } from '../../addresses/ip-intelligence.ts'
import type { Config } from '../../config/config.ts'
import type { Region } from '../../config/regions.ts'
import { regionsOf } from './lobby-plan.ts'
import { byDistance, byLatency } from './nearest.ts'

/** Milliseconds to regions, by their names, as the client measured them; null: it sent none. */
export type MeasuredLatencies = ReadonlyMap<string, number> | null

/** What decides how far the client is from regions. */
export type Whereabouts = { coordinates: Coordinates | null; latencies_ms: MeasuredLatencies }

export function latenciesOf({ latencies_ms }: Pick<BodyOf<typeof findLobby>, 'latencies_ms'>): MeasuredLatencies {
  return latencies_ms === undefined ? null : new Map(Object.entries(latencies_ms))
}

/** The region with the least latency in which one of the modes runs; the nearest where none was measured. */
export function bestRegion(
  config: Config,
  modes: readonly GameModeConfig[],
  { coordinates, latencies_ms }: Whereabouts,
): Region {
  const regions = regionsOf(config, modes)
  const best = regions.length === 1 ? regions[0] : firstOf(regions, coordinates, latencies_ms)
  if (best === undefined) throw new ApiError('MATCHMAKER_AUTO_CREATE_FAILED')
  return best
}

function firstOf(
  regions: readonly Region[],
  client: Coordinates | null,
  latencies_ms: MeasuredLatencies,
): Region | undefined {
  return latencies_ms === null ? byDistance(regions, client)[0]?.region : byLatency(regions, latencies_ms, client)[0]
}
