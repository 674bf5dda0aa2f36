// The regions in which the current version's game modes run, the nearest to the client first.
import type { GameModeConfig, listRegions, ResponseOf } from '@musterhost/contract'
import type { Coordinates } from '../../addresses/ip-intelligence.ts'
import type { Config } from '../../config/config.ts'
import type { MatchmakerContext } from '../seats/context.ts'
import { regionsOf } from '../seats/lobby-plan.ts'
import { byDistance } from '../seats/nearest.ts'

type RegionInfos = ResponseOf<typeof listRegions>['regions']

const KM_PER_MILE = 1.609_344

/** With the addresses at which the client measures its latency to each. */
export async function answerRegions(
  ctx: MatchmakerContext,
  namespace_id: string,
  client_ip: string,
): Promise<ResponseOf<typeof listRegions>> {
  const { pings } = ctx.edges()
  const regions = await regionsFor(ctx, namespace_id, client_ip)
  return { regions: regions.map((region) => ({ ...region, ping_addresses: [...(pings.get(region.region_id) ?? [])] })) }
}

export async function regionsFor(
  ctx: MatchmakerContext,
  namespace_id: string,
  client_ip: string,
): Promise<RegionInfos> {
  const { game_modes } = await ctx.namespaces.get(namespace_id)
  await ctx.ip_intelligence.opening()
  const { coordinates } = ctx.ip_intelligence.factsOf(client_ip)
  return regionInfos(ctx.config, [...game_modes.values()], coordinates)
}

function regionInfos(config: Config, modes: readonly GameModeConfig[], client: Coordinates | null): RegionInfos {
  return byDistance(regionsOf(config, modes), client).map(({ region, kilometers }) => ({
    region_id: region.name,
    provider_display_name: region.provider_display_name,
    region_display_name: region.display_name,
    datacenter_coord: { latitude: region.latitude, longitude: region.longitude },
    datacenter_distance_from_client: { kilometers, miles: kilometers / KM_PER_MILE },
  }))
}
