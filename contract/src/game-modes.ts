// The game modes of a version config with inherited values and defaults filled in.
import { type Admission, admissionOf, seatHoldOf } from './admission-config.ts'
import { dockerOfMode } from './docker-block.ts'
import { type ImageOverrides, imageOverridesOf } from './image-config.ts'
import { type MatchRules, matchRulesOf } from './matching/rules.ts'
import { protocolOf, type ServerProtocol } from './protocol-config.ts'
import { type ReadyCheck, readyCheckOf } from './ready-config.ts'
import type { SeatAction, VerificationConfig } from './verification-config.ts'
import {
  type IdentityRequirement,
  type IdleLobbies,
  PORT_PROTOCOL_DEFAULT,
  type PortProtocol,
  type PortRange,
  type VersionConfig,
} from './version-config.ts'

export type PortConfig = {
  name: string
  protocol: PortProtocol
  /** The number in every lobby. Null: the platform chooses one for each. */
  port: number | null
  port_range: PortRange | null
  /** The port of the other transport whose public number this one has too. Null: a number of its own. */
  same_number_as: string | null
  proxy_protocol: boolean
  require_player_token: boolean
  /** How the edge admits players. Null: the server checks the seats. */
  admission: Admission | null
}

/** A game mode with all defaults applied. */
export type GameModeConfig = {
  name: string
  /** Null: all regions of the platform. */
  regions: readonly string[] | null
  /** Tiers of the regions that set one. */
  region_tiers: Readonly<Record<string, string>>
  /** Tier in all other regions. Null: the default tier of each region. */
  tier: string | null
  /** Idle lobbies in the regions that set them. */
  region_idle_lobbies: Readonly<Record<string, IdleLobbies>>
  /** Idle lobbies in all other regions. */
  idle_lobbies: IdleLobbies
  max_players_normal: number
  max_players_direct: number
  max_players_party: number
  /** Rules by which find puts players together. Null: find takes the fullest open lobby. */
  matching: MatchRules | null
  max_spectators: number
  image_id: string | null
  /** Name of an image in a registry. Null: the build of `image_id`. */
  registry_image: string | null
  args: readonly string[]
  /** How the server of a container image starts in another way than the image says. */
  image: ImageOverrides
  env: Readonly<Record<string, string>>
  /** Text files by their path within the lobby's writable folder. */
  files: Readonly<Record<string, string>>
  /** Time for which a player without a connection keeps the seat. Null: the server checks the seats. */
  seat_hold_ms: number | null
  /** Null: the server calls ready. */
  ready: ReadyCheck
  /** What the server speaks in place of the calls of this platform. Null: nothing. */
  protocol: ServerProtocol | null
  network_mode: 'bridge' | 'host'
  /** What the server reaches beside the platform and DNS. */
  network: 'internet' | 'none'
  /** Whether developers may write to the standard input of the server. */
  standard_input: boolean
  /** Whether the server writes to a terminal. */
  terminal: boolean
  ports: readonly PortConfig[]
  listable: boolean
  taggable: boolean
  allow_dynamic_max_players: boolean
  find_enabled: boolean
  join_enabled: boolean
  create: { enable_public: boolean; enable_private: boolean; max_lobbies_per_identity: number | null } | null
  identity_requirement: Readonly<Record<SeatAction, IdentityRequirement>>
  /** External verification of each action. Null: none. */
  verification: Readonly<Record<SeatAction, VerificationConfig | null>>
  idle_grace_ms: number
  ready_deadline_ms: number
  player_deadline_ms: number
}

const MAX_PLAYERS_DEFAULT = 32
const IDLE_GRACE_MS_DEFAULT = 15_000
const READY_DEADLINE_MS_DEFAULT = 5 * 60_000
const PLAYER_DEADLINE_MS_DEFAULT = 2 * 60_000

/**
 * The game modes of a version with inherited values: a value of the game mode, else of the matchmaker, else the default of the
 * platform. The same holds for each member of `docker`.
 */
export function gameModesOf(config: VersionConfig): Map<string, GameModeConfig> {
  const modes = new Map<string, GameModeConfig>()
  const shared = config.matchmaker
  if (shared === undefined) return modes
  for (const [name, mode] of Object.entries(shared.game_modes)) {
    const docker = dockerOfMode(shared.docker, mode.docker) ?? undefined
    const regions = mode.regions ?? shared.regions
    const max_players = mode.max_players ?? shared.max_players ?? MAX_PLAYERS_DEFAULT
    const create = mode.actions?.create
    modes.set(name, {
      name,
      regions: regions === undefined ? null : Object.keys(regions),
      region_tiers: Object.fromEntries(
        Object.entries(regions ?? {}).flatMap(([region, { tier }]) => (tier === undefined ? [] : [[region, tier]])),
      ),
      tier: mode.tier ?? shared.tier ?? null,
      region_idle_lobbies: Object.fromEntries(
        Object.entries(regions ?? {}).flatMap(([region, { idle_lobbies }]) =>
          idle_lobbies === undefined ? [] : [[region, idle_lobbies]],
        ),
      ),
      idle_lobbies: mode.idle_lobbies ?? shared.idle_lobbies ?? { min: 0, max: 0 },
      max_players_normal: max_players,
      max_players_direct: mode.max_players_direct ?? shared.max_players_direct ?? max_players,
      max_players_party: mode.max_players_party ?? shared.max_players_party ?? max_players,
      matching: mode.matching === undefined ? null : matchRulesOf(mode.matching, max_players),
      max_spectators: mode.max_spectators ?? shared.max_spectators ?? 0,
      image_id: docker?.image_id ?? null,
      registry_image: docker?.image ?? null,
      args: docker?.args ?? [],
      image: imageOverridesOf(docker ?? {}),
      env: docker?.env ?? {},
      files: docker?.files ?? {},
      seat_hold_ms: seatHoldOf(docker),
      ready: readyCheckOf(docker?.ready),
      protocol: protocolOf(docker ?? {}),
      network_mode: docker?.network_mode ?? 'bridge',
      network: docker?.network ?? 'internet',
      standard_input: docker?.standard_input ?? false,
      terminal: docker?.terminal ?? false,
      ports: Object.entries(docker?.ports ?? {}).map(([port_name, port]) => ({
        name: port_name,
        protocol: port.protocol ?? PORT_PROTOCOL_DEFAULT,
        port: port.port ?? null,
        port_range: port.port_range ?? null,
        same_number_as: port.same_number_as ?? null,
        proxy_protocol: port.proxy_protocol ?? false,
        require_player_token: port.require_player_token ?? false,
        admission: admissionOf(docker ?? {}, port, port.protocol ?? PORT_PROTOCOL_DEFAULT),
      })),
      listable: mode.listable ?? true,
      taggable: mode.taggable ?? false,
      allow_dynamic_max_players: mode.allow_dynamic_max_players ?? false,
      find_enabled: mode.actions?.find?.enabled ?? true,
      join_enabled: mode.actions?.join?.enabled ?? true,
      create: create?.enabled
        ? {
            enable_public: create.enable_public ?? false,
            enable_private: create.enable_private ?? true,
            max_lobbies_per_identity: create.max_lobbies_per_identity ?? null,
          }
        : null,
      identity_requirement: {
        find: mode.actions?.find?.identity_requirement ?? 'none',
        join: mode.actions?.join?.identity_requirement ?? 'none',
        create: create?.identity_requirement ?? 'none',
      },
      verification: {
        find: verificationOf(mode.actions?.find),
        join: verificationOf(mode.actions?.join),
        create: verificationOf(mode.actions?.create),
      },
      idle_grace_ms: mode.idle_grace_ms ?? IDLE_GRACE_MS_DEFAULT,
      ready_deadline_ms: mode.ready_deadline_ms ?? READY_DEADLINE_MS_DEFAULT,
      player_deadline_ms: mode.player_deadline_ms ?? PLAYER_DEADLINE_MS_DEFAULT,
    })
  }
  return modes
}

type VerifiedAction = { verification_config?: VerificationConfig; verification?: VerificationConfig }

function verificationOf(action: VerifiedAction | undefined): VerificationConfig | null {
  return action?.verification_config ?? action?.verification ?? null
}

/** The tier of a game mode's lobbies in a region. Null: the default tier of the region. */
export function tierIn(mode: Pick<GameModeConfig, 'region_tiers' | 'tier'>, region: string): string | null {
  return Object.hasOwn(mode.region_tiers, region) ? mode.region_tiers[region]! : mode.tier
}

/** The idle lobbies of a game mode in a region. */
export function idleLobbiesIn(
  mode: Pick<GameModeConfig, 'region_idle_lobbies' | 'idle_lobbies'>,
  region: string,
): IdleLobbies {
  return Object.hasOwn(mode.region_idle_lobbies, region) ? mode.region_idle_lobbies[region]! : mode.idle_lobbies
}
