// What a body asks for, checked against the namespace's current version and made into what the book understands.
// Nothing here looks at lobbies.
import { ApiError, type BodyOf, type createLobby, type findLobby, type GameModeConfig, tierIn } from '@muster/contract'
import type { Coordinates } from '../../addresses/ip-intelligence.ts'
import type { Config } from '../../config/config.ts'
import type { Region } from '../../regions.ts'
import type { LobbyPlan, PortWish } from '../book/commands.ts'
import type { LobbyKey, Tags } from '../book/open-lobbies.ts'
import type { NamespaceRecord } from '../watch/namespaces.ts'
import { byDistance } from './nearest.ts'

const TAGS_MAX = 8
const TAG_NAME_BYTES_MAX = 128
const TAG_VALUE_BYTES_MAX = 512
const LOBBY_CONFIG_BYTES_MAX = 16 * 1024

type FindBody = BodyOf<typeof findLobby>
type CreateBody = BodyOf<typeof createLobby>

/** Throws the refusals of find that do not depend on lobbies. */
export function findWish(
  config: Config,
  namespace: NamespaceRecord,
  body: FindBody,
  client: Coordinates | null,
  ray_id: string | null,
): { places: LobbyKey[]; tags: Tags; plan: LobbyPlan | null } {
  if (body.game_modes.length === 0) throw new ApiError('MATCHMAKER_NO_GAME_MODE_PROVIDED')
  const modes = [...new Set(body.game_modes)].map((name) => requireMode(namespace, name))
  for (const mode of modes) {
    if (!mode.find_enabled) throw new ApiError('MATCHMAKER_FIND_DISABLED', { game_mode: mode.name })
    requireDynamicMaxPlayers(mode, body.max_players)
  }
  const tags = checkTags(modes, body.tags)
  const regions =
    body.regions === undefined
      ? [nearestRegion(config, modes, client)]
      : body.regions.map((name) => requireRegion(config, name))
  const places = modes.flatMap((mode) =>
    regions
      .filter((region) => runsIn(mode, region))
      .map((region) => ({ version_id: namespace.version_id, region: region.name, game_mode: mode.name })),
  )
  const first = places[0]
  if (first === undefined) throw new ApiError('MATCHMAKER_AUTO_CREATE_FAILED')
  if (body.prevent_auto_create_lobby) return { places, tags, plan: null }
  const mode = requireMode(namespace, first.game_mode)
  return {
    places,
    tags,
    plan: planOf(namespace, mode, requireRegion(config, first.region), body, ray_id),
  }
}

/** Throws the refusals of create that do not depend on lobbies. */
export function createWish(
  config: Config,
  namespace: NamespaceRecord,
  body: CreateBody,
  client: Coordinates | null,
  { identity_id, ray_id }: { identity_id: string | null; ray_id: string | null },
): LobbyPlan {
  const mode = requireMode(namespace, body.game_mode)
  if (mode.create === null) throw new ApiError('MATCHMAKER_CUSTOM_LOBBIES_DISABLED')
  const publicity = body.publicity ?? (mode.create.enable_public ? 'public' : 'private')
  if (!(publicity === 'public' ? mode.create.enable_public : mode.create.enable_private)) {
    throw new ApiError(
      'MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID',
      { publicity },
      { message: `The game mode does not allow ${publicity} custom lobbies.` },
    )
  }
  requireDynamicMaxPlayers(mode, body.max_players)
  checkTags([mode], body.tags)
  const lobby_config = body.lobby_config === undefined ? null : JSON.stringify(body.lobby_config)
  if (lobby_config !== null && Buffer.byteLength(lobby_config) > LOBBY_CONFIG_BYTES_MAX) {
    throw new ApiError(
      'MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID',
      { bytes_max: LOBBY_CONFIG_BYTES_MAX },
      { message: `lobby_config is larger than ${LOBBY_CONFIG_BYTES_MAX} bytes.` },
    )
  }
  const region = body.region === undefined ? nearestRegion(config, [mode], client) : requireRegion(config, body.region)
  if (!runsIn(mode, region)) throw new ApiError('MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE')
  const plan = planOf(namespace, mode, region, body, ray_id)
  const creator = {
    creator_identity_id: identity_id,
    creator_lobbies_max: identity_id === null ? null : mode.create.max_lobbies_per_identity,
  }
  return { ...plan, ...creator, publicity, is_custom: true, lobby_config }
}

/** A plan for each place in which a game mode of a version runs: lobbies that no player has asked for. */
export function plansOf(config: Config, version_id: string, modes: Iterable<GameModeConfig>): LobbyPlan[] {
  return [...modes].flatMap((mode) =>
    regionsOf(config, [mode]).map((region) => planOf({ version_id }, mode, region, {}, null)),
  )
}

function planOf(
  namespace: Pick<NamespaceRecord, 'version_id'>,
  mode: GameModeConfig,
  region: Region,
  { tags = {}, max_players }: Pick<FindBody, 'tags' | 'max_players'>,
  ray_id: string | null,
): LobbyPlan {
  return {
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
  }
}

/** HTTP has one port for all lobbies, and a range is the machine's own: all others get a number of the edge's. */
function edgePortsOf(mode: GameModeConfig): PortWish[] {
  return mode.ports.flatMap(({ name, protocol, port_range }): PortWish[] => {
    if (protocol === 'http' || protocol === 'https' || port_range !== null) return []
    return [{ name, transport: protocol === 'udp' ? 'udp' : 'tcp' }]
  })
}

/** A tier that the operator has taken away since the version was created is replaced by the region's default. */
function sizeOf(region: Region, name: string | null): Pick<LobbyPlan, 'tier' | 'cpu_cores' | 'memory_mb'> {
  const tier =
    region.tiers.find((item) => item.tier_name_id === name) ??
    region.tiers.find((item) => item.tier_name_id === region.default_tier)
  if (tier === undefined) throw new Error(`the region ${region.name} has no tiers`)
  const cpu_cores = tier.platform_cores_numerator / tier.platform_cores_denominator
  return { tier: tier.tier_name_id, cpu_cores, memory_mb: tier.memory }
}

function requireMode(namespace: NamespaceRecord, name: string): GameModeConfig {
  const mode = namespace.game_modes.get(name)
  if (mode === undefined) throw new ApiError('MATCHMAKER_GAME_MODE_NOT_FOUND', { game_mode: name })
  return mode
}

function requireRegion(config: Config, name: string): Region {
  const region = config.regions.find((item) => item.name === name)
  if (region === undefined) throw new ApiError('MATCHMAKER_REGION_NOT_FOUND', { region: name })
  return region
}

/** Of those in which one of the modes runs. */
function nearestRegion(config: Config, modes: readonly GameModeConfig[], client: Coordinates | null): Region {
  const regions = regionsOf(config, modes)
  const nearest = regions.length === 1 ? regions[0] : byDistance(regions, client)[0]?.region
  if (nearest === undefined) throw new ApiError('MATCHMAKER_AUTO_CREATE_FAILED')
  return nearest
}

/** Those in which at least one of the modes runs. */
export function regionsOf(config: Config, modes: readonly GameModeConfig[]): Region[] {
  return config.regions.filter((region) => modes.some((mode) => runsIn(mode, region)))
}

function runsIn(mode: GameModeConfig, region: Region): boolean {
  return mode.regions === null || mode.regions.includes(region.name)
}

function requireDynamicMaxPlayers(mode: GameModeConfig, max_players: number | undefined): void {
  if (max_players === undefined) return
  if (!mode.allow_dynamic_max_players) throw new ApiError('MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED')
  const allowed = Math.max(mode.max_players_normal, mode.max_players_direct)
  if (max_players > allowed) {
    throw new ApiError('MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID', { max_players, allowed })
  }
}

function checkTags(modes: readonly GameModeConfig[], tags: Record<string, string> | undefined): Tags {
  const pairs = Object.entries(tags ?? {})
  if (pairs.length === 0) return pairs
  if (pairs.length > TAGS_MAX) throw new ApiError('MATCHMAKER_TOO_MANY_TAGS', { tags_max: TAGS_MAX })
  for (const [name, value] of pairs) {
    if (Buffer.byteLength(name) > TAG_NAME_BYTES_MAX) {
      throw new ApiError('MATCHMAKER_TAG_NAME_TOO_LONG', { bytes_max: TAG_NAME_BYTES_MAX })
    }
    if (Buffer.byteLength(value) > TAG_VALUE_BYTES_MAX) {
      throw new ApiError('MATCHMAKER_TAG_TOO_LONG', { tag: name, bytes_max: TAG_VALUE_BYTES_MAX })
    }
  }
  if (!modes.every((mode) => mode.taggable)) throw new ApiError('MATCHMAKER_TAGS_DISABLED')
  return pairs
}
