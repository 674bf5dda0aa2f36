// What the checks of a version config need to know of a platform. Offline nothing is known: the checks then take null in its
// place and leave out what only a platform can decide.
import type { AllowedRegistry } from '../registry-image.ts'
import type { PortRange } from '../version-config.ts'

export type PlatformRules = {
  mode: 'development' | 'production'
  regions: readonly { name: string; tiers: readonly { tier_name_id: string }[] }[]
  /** Ports that lobbies in network mode host may take. */
  host_ranges: readonly PortRange[]
  /** Registries whose images lobbies may run. */
  registries: readonly AllowedRegistry[]
  /** Whether lobbies are tasks of a Docker Swarm. */
  is_swarm: boolean
  /** Whether the edge has certificates to show. */
  has_certificates: boolean
  /** Why the platform would not call an endpoint; null when it would. It resolves no name. */
  checkUrl: (url: string) => { reason: string; message: string } | null
}
