// The settings of a process, as every part of the platform reads them. readConfig() makes them from the environment.
import type { PortRange } from '@musterhost/contract'
import type { KeepRule } from '../text/keep-rule.ts'
import type { Acme } from './acme.ts'
import type { AddressBlock } from './lobby-network.ts'
import type { SettingMembers } from './members.ts'
import type { ProcessNumber } from './processes.ts'
import type { Region, RegionTier, RoomLimit } from './regions.ts'
import type { Role } from './roles.ts'
import type { FEED_CLASSES, SettingName } from './settings.ts'
import type { SwarmConfig } from './swarm.ts'

/** An S3 service and the credentials for it. `endpoint`: an origin, without a slash at the end. */
export type S3Service = {
  endpoint: string
  region: string
  access_key_id: string
  secret_access_key: string
}

/** A place in a bucket. `prefix`: without slashes at its ends, or empty. */
export type S3Place = { bucket: string; prefix: string }

export type LoginTurnstile = { site_key: string; secret_key: string }

/** The settings that are used as they are given, and what is made of the others. */
export type Config = SettingMembers & {
  /** Production requires three registrable domains, and refuses what is only safe on a laptop. */
  mode: 'development' | 'production'
  /** Name of this node: a machine's data folder with the roles that it runs. It survives restarts. */
  node_id: string
  data_dir: string
  roles: readonly Role[]
  /** Which process of its role this one is. */
  process: ProcessNumber
  /** The port of the HTTP of each matchmaker of the machine, by its number. */
  matchmaker_ports: readonly number[]
  /** How many processes of each role `muster start` runs. */
  process_counts: Readonly<Record<Role, number>>
  /** Null: the embedded PostgreSQL in the data folder. */
  database_url: string | null
  /** Where notifications are read. Null: at `database_url`. */
  database_listen_url: string | null
  /** CIDR blocks of other machines that may call api and matchmaker without TLS. */
  internal_plain_from: readonly string[]
  /** Where this process serves its metrics and health; null: nowhere. */
  metrics: { host: string; port: number; token: string | null } | null
  /** The collector that rays are exported to, and extra headers; null: no export. */
  otlp: { url: string; headers: Readonly<Record<string, string>> } | null
  /** Addresses on which HTTP and HTTPS listen; null: every address. */
  edge_hosts: readonly (string | null)[]
  /** Null: players do not reach this edge at a host of its own. */
  edge_public_host: string | null
  /** Ports in the URLs that clients receive: those of a load balancer in front of the edge, or the edge's own. */
  advertised_http_port: number
  advertised_https_port: number
  /** Scheme of the URLs of hub, API, matchmaker and sites. */
  public_scheme: 'http' | 'https'
  /** Folder of certificates for the edge; null: none. */
  certificates_dir: string | null
  /** TCP and UDP ports that the edge serves for lobbies. `spare`: how many of each are open in advance. */
  edge_ports: PortRange & {
    spare: number
    /** Address that they listen on. Null: every address of the machine. */
    host: string | null
  }
  /** UDP port at which the edge echoes datagrams, at the host of `edge_ports`; null: none. */
  edge_ping_port: number | null
  /** Ports that lobbies in network mode host may use; the edge does not use them. */
  host_port_ranges: readonly PortRange[]
  /** Null: no certificates are ordered. */
  acme: Acme | null
  /** CIDR blocks that outgoing requests may reach although they are not public. */
  fetch_private_networks: readonly string[]
  /** Whether verification endpoints may be at `http://localhost:PORT`; development only. */
  fetch_localhost: boolean
  /** Keys of the captcha that a login by e-mail requires; null: none. */
  login_turnstile: LoginTurnstile | null
  /** PEM: authorities that outgoing requests trust in addition to the well-known ones. */
  fetch_authorities: readonly string[]
  regions: readonly Region[]
  /** Names of the regions whose lobbies the runner of this node runs. */
  runner_regions: readonly string[]
  /** What all lobbies of this node may use together. */
  node_capacity: RoomLimit
  /** Currency of the prices of regions; null: there are no prices. */
  currency: string | null
  /** All tiers, the largest first; a region has some of them. */
  tiers: readonly RegionTier[]
  /** Null: there is no mail server, and login codes are written to the log. */
  mail: { smtp_url: string; from: string } | null
  /** `members`: a group always has a limit of them. */
  quotas: { members: number }
  /** The S3 service of the settings; null: none. */
  s3: S3Service | null
  /** The bucket of stored files; null: the data folder has them. `upload_endpoint`: null when uploads go through the api. */
  objects: (S3Place & { upload_endpoint: string | null }) | null
  /**
   * Backups by a schedule; null: none. `to`: a folder, or a place in a bucket. `schedule`: five fields of cron, in UTC. `keep`:
   * which ones stay.
   */
  backups: { to: string; schedule: string; keep: KeepRule } | null
  /** The key that encrypts what is in a repository of backups; null: it is not encrypted. */
  backup_key: string | null
  /** Data that classifies addresses; `folder` has lists and mmdb files. */
  ip_data: {
    folder: string
    /** Whether the AS numbers that come with the platform are read. */
    has_seed: boolean
    feeds: readonly { list_class: (typeof FEED_CLASSES)[number]; url: string }[]
    feed_interval_ms: number
  }
  /** CIDR blocks of proxies whose X-Forwarded-For is trusted. */
  trusted_proxies: readonly string[]
  /** Unix socket where the edge also listens, for a proxy on this machine; null: none. */
  edge_socket: string | null
  /** Whether lobbies run under bubblewrap: always, where it is installed, or never (development only). */
  sandbox: 'required' | 'available' | 'off'
  /** The addresses of lobbies' own networks; null: lobbies share the network of this machine. */
  lobby_network: AddressBlock | null
  /** For the docker driver. `base_image`: null where none is set. */
  docker: { socket: string; base_image: string | null }
  /** For the swarm driver. */
  swarm: SwarmConfig
  /** Registries whose images lobbies may run. `origin`: where their API is. */
  registries: readonly { host: string; prefix: string; origin: string }[]
  /** Settings of the environment as they were given, without secret ones: their value is empty. */
  given_settings: Readonly<Partial<Record<SettingName, string>>>
}
