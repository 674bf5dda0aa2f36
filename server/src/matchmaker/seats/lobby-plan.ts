// Plans of lobbies: what a lobby of a game mode would be in a region.
import { ApiError, type BodyOf, type findLobby, type GameModeConfig, tierIn } from '@musterhost/contract'
import type { Config } from '../../config/config.ts'
import type { Region } from '../../config/regions.ts'
import type { LobbyPlan, PortRequest } from '../book/commands.ts'
import type { NamespaceRecord } from '../watch/namespaces.ts'
import type { MatchmakerContext } from './context.ts'
import type { Requester } from './requester.ts'

type FindBody = BodyOf<typeof findLobby>

/** A plan for each region in which a game mode of a version runs: lobbies that are started before any player asks. */
export function plansOf(config: Config, version_id: string, modes: Iterable<GameModeConfig>): LobbyPlan[] {
  return [...modes].flatMap((mode) =>
    regionsOf(config, [mode]).map((region) => planOf({ version_id }, mode, region, {}, null)),
  )
}

export function planOf(
  namespace: Pick<NamespaceRecord, 'version_id'>,
  mode: GameModeConfig,
  region: Region,
  { tags = {}, max_players }: Pick<FindBody, 'tags' | 'max_players'>,
  ray_id: string | null,
): LobbyPlan {
  const plan: LobbyPlan = {
    ...sizeOf(region, tierIn(mode, region.name)),
    edge_ports_wanted: edgePortsOf(mode),
    version_id: namespace.version_id,
    game_mode: mode.name,
    region: region.name,
    publicity: 'public',
    is_custom: false,
    creator_identity_id: null,
    ray_id,
    creator_lobbies_max: null,
    max_players_normal: max_players ?? mode.max_players_normal,
    max_players_direct: max_players ?? mode.max_players_direct,
    max_players_party: mode.max_players_party,
    tags,
    lobby_config: null,
    ready_within_ms: mode.ready_deadline_ms,
    player_deadline_ms: mode.player_deadline_ms,
    idle_grace_ms: mode.idle_grace_ms,
    seat_hold_ms: mode.seat_hold_ms,
  }
  // The journal of lobbies without spectators has no such member.
  return mode.max_spectators === 0 ? plan : { ...plan, max_spectators: mode.max_spectators }
}

/** Ports that get a number of the edge. HTTP has one port for all lobbies; a range belongs to the machine. */
function edgePortsOf(mode: GameModeConfig): PortRequest[] {
  return mode.ports.flatMap(({ name, protocol, port_range, same_number_as }): PortRequest[] => {
    if (protocol === 'http' || protocol === 'https' || port_range !== null) return []
    const transport = protocol === 'udp' ? 'udp' : 'tcp'
    return [{ name, transport, ...(same_number_as !== null && { same_number_as }) }]
  })
}

/** A tier that the operator removed after the version was created is replaced by the region's default. */
function sizeOf(region: Region, name: string | null): Pick<LobbyPlan, 'tier' | 'cpu_cores' | 'memory_mb'> {
  const tier =
    region.tiers.find((item) => item.tier_name_id === name) ??
    region.tiers.find((item) => item.tier_name_id === region.default_tier)
  if (tier === undefined) throw new Error(`the region ${region.name} has no tiers`)
  const cpu_cores = tier.platform_cores_numerator / tier.platform_cores_denominator
  return { tier: tier.tier_name_id, cpu_cores, memory_mb: tier.memory }
}

export function requireRegion(config: Config, name: string): Region {
  const region = config.regions.find((item) => item.name === name)
  if (region === undefined) throw new ApiError('MATCHMAKER_REGION_NOT_FOUND', { region: name })
  return region
}

/** The regions in which at least one of the modes runs. */
export function regionsOf(config: Config, modes: readonly GameModeConfig[]): Region[] {
  return config.regions.filter((region) => modes.some((mode) => runsIn(mode, region)))
}

export function runsIn(mode: GameModeConfig, region: Region): boolean {
  return mode.regions === null || mode.regions.includes(region.name)
}

export function withFailures(
  { failed_starts }: MatchmakerContext,
  { namespace_id }: Requester,
  plan: LobbyPlan,
): LobbyPlan {
  const failed_before = failed_starts.before(namespace_id, plan)
  return failed_before === undefined ? plan : { ...plan, failed_before }
}
