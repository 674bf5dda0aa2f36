// The settings of a process, as every part of the platform reads them. readConfig() makes them from the environment.
import type { PortRange } from '@musterhost/contract'
import type { Acme } from './acme.ts'
import type { AddressBlock } from './lobby-network.ts'
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

export type Config = {
  /** Production requires three registrable domains, and refuses what is only safe on a laptop. */
  mode: 'development' | 'production'
  /** Name of this node: a machine's data folder with the roles that it runs. It survives restarts. */
  node_id: string
  data_dir: string
  roles: readonly Role[]
  /** Null: the embedded PostgreSQL in the data folder. */
  database_url: string | null
  /** Where notifications are read. Null: at `database_url`. */
  database_listen_url: string | null
  /** Unix socket of the link to the platform; null: this is no node that has joined. */
  link: string | null
  domains: { main: string; cdn: string; job: string }
  /** Address that api and matchmaker listen on. The edge and lobbies connect to it. */
  internal_host: string
  /** CIDR blocks of other machines that may call api and matchmaker without TLS. */
  internal_plain_from: readonly string[]
  api_port: number
  matchmaker_port: number
  /** Where the matchmaker role serves lobbies: the port of PLATFORM_API_URL. */
  lobby_api_port: number
  /** Where this process serves its metrics and health; null: nowhere. */
  metrics: { host: string; port: number; token: string | null } | null
  /** How long a process still serves after it has reported that it is not ready. */
  drain_ms: number
  /** The collector that rays are exported to, and extra headers; null: no export. */
  otlp: { url: string; headers: Readonly<Record<string, string>> } | null
  /** How long an edge with a successor keeps the connections that cannot move. */
  edge_retire_ms: number
  /** Addresses on which HTTP and HTTPS listen; null: every address. */
  edge_hosts: readonly (string | null)[]
  /** Null: players do not reach this edge at a host of its own. */
  edge_public_host: string | null
  edge_http_port: number
  edge_https_port: number
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
  /** Ports that lobbies in network mode host may use; the edge does not use them. */
  host_port_ranges: readonly PortRange[]
  /** CIDR blocks of load balancers whose TCP connections begin with a PROXY protocol v2 header. */
  proxy_protocol_from: readonly string[]
  /** Null: no certificates are ordered. */
  acme: Acme | null
  /** Name servers (`address` or `address:port`) for the hosts of outgoing requests; empty: those of the system. */
  dns_servers: readonly string[]
  /** CIDR blocks that outgoing requests may reach although they are not public. */
  fetch_private_networks: readonly string[]
  /** Whether verification endpoints may be at `http://localhost:PORT`; development only. */
  fetch_localhost: boolean
  /** Keys of the captcha that a login by e-mail requires; null: none. */
  login_turnstile: LoginTurnstile | null
  /** URLs that verify captcha responses. The operator chose them, so they may be in any network. */
  captcha_urls: { hcaptcha: string; turnstile: string }
  /** PEM: authorities that outgoing requests trust in addition to the well-known ones. */
  fetch_authorities: readonly string[]
  /** How long lobbies keep their seats while their node does not report. */
  node_grace_ms: number
  regions: readonly Region[]
  /** Names of the regions whose lobbies the runner of this node runs. */
  runner_regions: readonly string[]
  /** What all lobbies of this node may use together. */
  node_capacity: RoomLimit
  /** Currency of the prices of regions; null: there are no prices. */
  currency: string | null
  /** All tiers, the largest first; a region has some of them. */
  tiers: readonly RegionTier[]
  /** Requests per minute of one client (per token for cloud); 0: no limit. */
  rate_limits: {
    seats_per_minute: number
    matchmaker_per_minute: number
    cloud_per_minute: number
    kv_per_minute: number
    /** Login codes of one client. */
    logins_per_quarter_hour: number
    /** New guests of one client. */
    guests_per_minute: number
  }
  /** Who may create groups: every user, or only administrators. */
  access: 'public' | 'private'
  /** Null: there is no mail server, and login codes are written to the log. */
  mail: { smtp_url: string; from: string } | null
  /** Limits of one group; null: no limit. */
  quotas: {
    games: number | null
    namespaces: number | null
    builds: number | null
    sites: number | null
    bytes: number | null
    domains: number | null
    members: number
  }
  /** How long a custom domain stays reserved for its group after the group has given it up. */
  domain_quarantine_ms: number
  /** Guests of a namespace; null: no limit. */
  guests_max: number | null
  /** Limits of the KV store of a namespace. */
  kv: { entries_max: number; bytes_max: number }
  uploads: {
    /** A slower sender is cut off; 0: no minimum. */
    bytes_per_second_min: number
    /** Files of one group that arrive at the same time. */
    group_concurrency_max: number
    /** Uploads leave this much of the disk free. */
    disk_free_bytes_min: number
  }
  /** The S3 service of the settings; null: none. */
  s3: S3Service | null
  /** The bucket of stored files; null: the data folder has them. `upload_endpoint`: null when uploads go through the api. */
  objects: (S3Place & { upload_endpoint: string | null }) | null
  /** Bytes of files of sites that the edge keeps on its disk, where stored files are in a bucket. */
  site_cache_bytes_max: number
  /** Period in which every stored file is compared with its hash once; null: never. */
  check_ms: number | null
  lobbies: {
    /** With less free space on a runner's disk, no lobby starts in its regions. */
    disk_free_bytes_min: number
    /** Logs of ended lobbies on a runner's disk; null: no limit. */
    ended_logs_bytes_max: number | null
  }
  /** Ordinary requests whose ray is kept; null: rays are off. */
  rays_per_second: number | null
  /** How long things are kept after they are over; null: forever. */
  retention: {
    audit_ms: number | null
    abandoned_uploads_ms: number | null
    /** Files of something deleted. */
    removed_objects_ms: number
    journal_ms: number | null
    players_ms: number | null
    lobbies_ms: number | null
    rays_ms: number | null
    identities_ms: number | null
    runs_ms: number | null
    /** Single analytics events, and roll-ups finer than an hour. */
    events_ms: number | null
    /** Roll-ups of hours and days. */
    analytics_ms: number | null
    tokens_ms: number | null
    sessions_ms: number | null
    login_codes_ms: number | null
    device_links_ms: number | null
    invites_ms: number | null
    jobs_ms: number | null
    /** Unpacked builds that no lobby runs on. */
    builds_ms: number | null
    /** Logs and folders of ended lobbies. */
    logs_ms: number | null
  }
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
  /** What runs lobbies. */
  driver: 'process' | 'docker' | 'swarm'
  /** For the docker driver. `base_image`: null where none is set. */
  docker: { socket: string; base_image: string | null }
  /** For the swarm driver. */
  swarm: SwarmConfig
  /** Registries whose images lobbies may run. `origin`: where their API is. */
  registries: readonly { host: string; prefix: string; origin: string }[]
  /** File with the credentials of registries, in the format of docker; null: none. */
  registry_auth_file: string | null
  log_level: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** Settings of the environment as they were given, without secret ones: their value is empty. */
  given_settings: Readonly<Partial<Record<SettingName, string>>>
}
