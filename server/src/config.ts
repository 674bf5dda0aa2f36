// Environment -> one frozen Config. The only reader of process.env. Every setting is a line of SETTINGS, from which
// the reference page of the docs is generated; with no environment at all the platform runs on this machine alone.
import { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { hostname } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { getDomain } from 'tldts'
import { machineCapacity, type Region, type RegionTier, readRegions, thisMachine } from './regions.ts'
import { didYouMean } from './suggestion.ts'
import { parseTsigKey, type TsigKey } from './tsig-key.ts'

export const ROLES = ['api', 'matchmaker', 'runner', 'edge'] as const
export type Role = (typeof ROLES)[number]

/**
 * Flags of Node for a role's process. The edge holds many connections for long, which a young generation that grows to its
 * usual size costs more than they do: 13.8 instead of 17.5 KB for an idle WebSocket among 9,000, at the same speed. The
 * young generation of api and runner stays small because they are idle for most of their lives, and V8 gives none of it back.
 */
export const ROLE_FLAGS: Readonly<Record<Role, readonly string[]>> = {
  api: ['--max-semi-space-size=4'],
  matchmaker: [],
  runner: ['--max-semi-space-size=2'],
  edge: ['--max-semi-space-size=4'],
}

/** Service managers give a program a minute to stop. */
const DRAIN_SECONDS_MAX = 30

export type PortRange = { min: number; max: number }

export type { Region, RegionTier } from './regions.ts'

export type LoginTurnstile = { site_key: string; secret_key: string }

export type Config = {
  /** Production demands three registrable domains and forbids what is only safe on a laptop. */
  mode: 'development' | 'production'
  /** Which of two platforms on one database this is: the same over restarts, different on another machine or folder. */
  node_id: string
  data_dir: string
  roles: readonly Role[]
  /** Null: the embedded PostgreSQL in the data folder. */
  database_url: string | null
  domains: { main: string; cdn: string; job: string }
  /** Addresses that api and matchmaker are bound to, and reached at by the edge and by lobbies. */
  internal_host: string
  api_port: number
  matchmaker_port: number
  /** Where the matchmaker role listens for lobbies: the port of PLATFORM_API_URL. */
  lobby_api_port: number
  /** Where this process tells its operator metrics and health; null: nowhere. */
  metrics: { host: string; port: number; token: string | null } | null
  /** How long a process goes on after it has said that it is not ready any more. */
  drain_ms: number
  /** Whom rays are sent to as well, with which headers; null: nobody. */
  otlp: { url: string; headers: Readonly<Record<string, string>> } | null
  edge_http_port: number
  edge_https_port: number
  /** The ports that players are told; a load balancer may stand in front of the edge. */
  advertised_http_port: number
  advertised_https_port: number
  /** What people's addresses begin with: those of hub, API, matchmaker and sites. */
  public_scheme: 'http' | 'https'
  /** The folder of the edge's own certificates, named in the settings; null: there is none. */
  certificates_dir: string | null
  /** Numbers of tcp and udp ports that the edge serves for lobbies; `spare`: as many of each are open beside those in use. */
  edge_ports: PortRange & {
    spare: number
    /** The address that they listen at: one of their own on a laptop. Null: every address of the machine. */
    host: string | null
  }
  /** What lobbies in network mode host may name as their ports: the edge keeps out of it. */
  host_port_ranges: readonly PortRange[]
  /** CIDR blocks of balancers whose tcp connections begin with a PROXY protocol v2 header. */
  proxy_protocol_from: readonly string[]
  /** Whom certificates are ordered from, and how many at most in three hours, and in a week below one domain; null: nobody. */
  acme: {
    directory_url: string
    email: string | null
    orders_max: number
    domain_orders_max: number
    dns: AcmeDns | null
  } | null
  /** Name servers (`address` or `address:port`) that are asked for the names of others; none: those of the system. */
  dns_servers: readonly string[]
  /** CIDR blocks that outgoing calls may reach though they are not public. */
  fetch_private_networks: readonly string[]
  /** Whether verification endpoints may be at `http://localhost:PORT`; development only. */
  fetch_localhost: boolean
  /** Where captcha providers are asked whether a response is good. The operator's own word: any network. */
  /** Keys of the captcha that a login by e-mail requires; null: none. */
  login_turnstile: LoginTurnstile | null
  captcha_urls: { hcaptcha: string; turnstile: string }
  /** PEM: authorities that outgoing calls believe beside the well-known ones. */
  fetch_authorities: readonly string[]
  regions: readonly Region[]
  /** Of the prices of regions; null: there are none. */
  currency: string | null
  /** All of them, the largest first; a region has some. */
  tiers: readonly RegionTier[]
  /** Requests a minute of one client bucket (or token, for cloud); 0 switches the limit off. */
  rate_limits: {
    seats_per_minute: number
    matchmaker_per_minute: number
    cloud_per_minute: number
    kv_per_minute: number
    /** Login codes that one client bucket may ask for in a quarter of an hour; 0 switches the limit off. */
    logins_per_quarter_hour: number
    /** Guests that one client may make; 0 switches the limit off. */
    guests_per_minute: number
  }
  /** Whether everybody who logs in may make groups, or only administrators. */
  access: 'public' | 'private'
  /** Null: there is no mail server, and login codes are shown in the log. */
  mail: { smtp_url: string; from: string } | null
  /** What one group may have; null: as much as it likes. */
  quotas: {
    games: number | null
    namespaces: number | null
    builds: number | null
    sites: number | null
    bytes: number | null
    domains: number | null
    members: number
  }
  /** How long a custom domain that was given up is reserved for the group that had it. */
  domain_quarantine_ms: number
  /** Guests of a namespace; null: as many as come. */
  guests_max: number | null
  /** What a namespace keeps by key. */
  kv: { entries_max: number; bytes_max: number }
  uploads: {
    /** A sender must keep to this pace; 0 lets it be as slow as it likes. */
    bytes_per_second_min: number
    /** Bodies that arrive at the same time for one group. */
    group_concurrency_max: number
    /** Uploads leave this much of the disk free. */
    disk_free_bytes_min: number
  }
  /** Every stored byte is compared with its hash once in this time; null: never. */
  check_ms: number | null
  lobbies: {
    /** With less than this free on a runner's disk no lobby is opened in its regions. */
    disk_free_bytes_min: number
    /** Logs of lobbies that have ended take this much of a runner's disk at most; null: as much as they like. */
    ended_logs_bytes_max: number | null
  }
  /** Ordinary requests whose ray is kept; null: rays are switched off. */
  rays_per_second: number | null
  /** How long what is over is kept; null: for ever. */
  retention: {
    abandoned_uploads_ms: number | null
    /** Of the bytes of what was deleted. */
    removed_objects_ms: number
    journal_ms: number | null
    players_ms: number | null
    lobbies_ms: number | null
    rays_ms: number | null
    identities_ms: number | null
    runs_ms: number | null
    /** Of analytics, one by one; and roll-ups finer than an hour. */
    events_ms: number | null
    /** Of roll-ups of hours and days. */
    analytics_ms: number | null
    tokens_ms: number | null
    sessions_ms: number | null
    login_codes_ms: number | null
    device_links_ms: number | null
    invites_ms: number | null
    jobs_ms: number | null
    /** Unpacked, while no lobby runs on it. */
    builds_ms: number | null
    /** Of the logs and folders of lobbies that have ended. */
    logs_ms: number | null
  }
  /** What says what an address is; `folder` has lists and mmdb files. */
  ip_data: {
    folder: string
    /** Whether the AS numbers that come with the platform are read. */
    has_seed: boolean
    feeds: readonly { list_class: (typeof FEED_CLASSES)[number]; url: string }[]
    feed_interval_ms: number
  }
  /** CIDR blocks whose X-Forwarded-For is believed. */
  trusted_proxies: readonly string[]
  /** Where the edge also listens for a proxy on this machine; null: nowhere. */
  edge_socket: string | null
  /** Lobbies are run under bubblewrap: always, where it is there, or never (development only). */
  sandbox: 'required' | 'available' | 'off'
  log_level: 'debug' | 'info' | 'warn' | 'error' | 'silent'
}

/** How wildcard certificates are proven (DNS-01). */
export type AcmeDns = {
  /** Below which domains wildcards are ordered. */
  domains: readonly AcmeDnsDomain[]
  /** A name server that takes signed updates (RFC 2136), or a program. The key is null where this process orders nothing. */
  publisher: { kind: 'server'; server: string; key: TsigKey | null } | { kind: 'hook'; path: string }
  /** Name servers that must serve the record before the authority is asked; none: those of the record's zone. */
  check_servers: readonly string[]
}
const ACME_DNS_DOMAINS = ['job', 'cdn'] as const
export type AcmeDnsDomain = (typeof ACME_DNS_DOMAINS)[number]

export const FEED_CLASSES = ['hosting', 'proxy', 'tor', 'vpn'] as const
const FEEDS_MAX = 16
const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '::1', 'localhost'])
const MB = 1_000_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The contract's GROUP_MEMBERS_MAX: a group's members are told in one list. */
const MEMBERS_MAX = 256

/** Of sun_path, less the zero at its end. */
const SOCKET_PATH_BYTES_MAX = 107
const LOOPBACK_PROXY =
  "MUSTER_TRUSTED_PROXIES has a loopback address: lobbies share this machine's network, and each could claim any client " +
  'address. A proxy on this machine uses MUSTER_EDGE_SOCKET instead (docs/deploying.md).'

const EDGE_PORTS_SPARE_DEFAULT = 32
/** Where raw ports listen on a laptop: not where the hub does, whose cookies a browser would send along. */
const RAW_PORTS_LOOPBACK = '127.0.0.2'
/** As many ports as a version config may name. */
const EDGE_PORTS_SPARE_MIN = 16
/** Where lobbies listen for the edge. */
export const LOBBY_PORTS: PortRange = { min: 20_000, max: 25_999 }

type Setting = { name: string; default: string; description: string }

export const SETTINGS = [
  { name: 'MUSTER_DATA', default: './.muster', description: 'Folder of everything that lasts.' },
  { name: 'MUSTER_ROLES', default: ROLES.join(','), description: `Roles to run, of ${ROLES.join(', ')}.` },
  { name: 'DATABASE_URL', default: '', description: 'PostgreSQL to use instead of the embedded one.' },
  { name: 'MUSTER_DOMAIN_MAIN', default: 'localhost', description: 'Domain of hub, API and matchmaker.' },
  { name: 'MUSTER_DOMAIN_CDN', default: 'cdn.localhost', description: "Domain under which games' sites are served." },
  { name: 'MUSTER_DOMAIN_JOB', default: 'localhost', description: 'Domain under which lobbies are reached.' },
  { name: 'MUSTER_INTERNAL_HOST', default: '127.0.0.1', description: 'Address that api and matchmaker listen on.' },
  { name: 'MUSTER_API_PORT', default: '8080', description: 'Port of the api role.' },
  { name: 'MUSTER_MATCHMAKER_PORT', default: '8081', description: 'Port of the matchmaker role.' },
  {
    name: 'MUSTER_LOBBY_API_PORT',
    default: '8082',
    description: 'Port at which the matchmaker role serves lobbies (PLATFORM_API_URL).',
  },
  {
    name: 'MUSTER_METRICS_PORT',
    default: '9480',
    description: 'First of four ports, of api, matchmaker, runner and edge, with metrics and health; 0: none.',
  },
  {
    name: 'MUSTER_OTLP_URL',
    default: '',
    description: 'Collector of OpenTelemetry (http://127.0.0.1:4318) that rays are exported to.',
  },
  { name: 'MUSTER_OTLP_HEADERS', default: '', description: 'What it is sent beside them: name=value, between commas.' },
  { name: 'MUSTER_METRICS_HOST', default: '127.0.0.1', description: 'Address that they are bound to.' },
  {
    name: 'MUSTER_METRICS_TOKEN',
    default: '',
    description: 'Whoever asks for metrics shows it (Authorization: Bearer); needed where the address is not loopback.',
  },
  {
    name: 'MUSTER_DRAIN_SECONDS',
    default: '0',
    description:
      'On SIGTERM a process that has no supervisor is not ready any more, and serves on for so long before it stops: for balancers that look now and then.',
  },
  { name: 'MUSTER_EDGE_HTTP_PORT', default: '80, else 8000', description: 'Public HTTP port.' },
  { name: 'MUSTER_EDGE_HTTPS_PORT', default: '443, else 8443', description: 'Public HTTPS port.' },
  { name: 'MUSTER_ADVERTISED_HTTP_PORT', default: 'the edge port', description: 'HTTP port that players are told.' },
  { name: 'MUSTER_ADVERTISED_HTTPS_PORT', default: 'the edge port', description: 'HTTPS port that players are told.' },
  {
    name: 'MUSTER_PUBLIC_SCHEME',
    default: 'https in production',
    description: 'What addresses for people begin with: https, or http.',
  },
  {
    name: 'MUSTER_TLS_CERTIFICATES',
    default: '',
    description: 'Folder of certificates with their keys, as docs/https.md describes it.',
  },
  {
    name: 'MUSTER_EDGE_PORTS',
    default: '26000-31999',
    description: 'TCP and UDP ports that players reach lobbies at.',
  },
  {
    name: 'MUSTER_EDGE_PORTS_HOST',
    default: '127.0.0.2 in development',
    description:
      'Address that these ports listen at; in production every address, unless one is named. In development another loopback address than the hub has.',
  },
  {
    name: 'MUSTER_EDGE_PORTS_SPARE',
    default: '32',
    description: 'Of these, as many are open beside those in use, for the next lobbies; 16 at least.',
  },
  {
    name: 'MUSTER_HOST_PORT_RANGES',
    default: '',
    description: 'Ranges (27000-27999) that lobbies in network mode host may have as their own; the edge leaves them.',
  },
  {
    name: 'MUSTER_PROXY_PROTOCOL_FROM',
    default: '',
    description: 'CIDR blocks of balancers that put a PROXY v2 header before each TCP connection to these ports.',
  },
  {
    name: 'MUSTER_ACME',
    default: '',
    description:
      'Directory URL of an authority that certificates are ordered from by ACME; its terms are then agreed to.',
  },
  { name: 'MUSTER_ACME_EMAIL', default: '', description: 'Whom the authority may write to.' },
  { name: 'MUSTER_ACME_ORDERS_MAX', default: '200', description: 'Certificates ordered in three hours.' },
  {
    name: 'MUSTER_ACME_DOMAIN_ORDERS_MAX',
    default: '45',
    description: 'Certificates ordered in a week below one registrable domain, beside renewals.',
  },
  {
    name: 'MUSTER_ACME_DNS_SERVER',
    default: '',
    description:
      'Name server (`address` or `address:port`) that takes updates by RFC 2136. With it, wildcard certificates are ordered by DNS-01.',
  },
  {
    name: 'MUSTER_ACME_DNS_KEY',
    default: '',
    description: 'File of the TSIG key that signs these updates, as `tsig-keygen` or `keymgr -t` writes it.',
  },
  {
    name: 'MUSTER_ACME_DNS_HOOK',
    default: '',
    description:
      'Program that is run instead of an update: `HOOK present NAME VALUE` and `HOOK cleanup NAME VALUE` (docs/https.md).',
  },
  {
    name: 'MUSTER_ACME_DNS_FOR',
    default: 'job',
    description: 'Domains whose hosts get wildcard certificates by DNS-01, of job, cdn.',
  },
  {
    name: 'MUSTER_ACME_DNS_CHECK',
    default: "the zone's",
    description: 'Name servers that must serve the TXT record before the authority is asked to look.',
  },
  { name: 'MUSTER_CONFIG', default: './muster.toml', description: 'File of regions and tiers; it need not be there.' },
  {
    name: 'MUSTER_CAPACITY_CORES',
    default: "this machine's; none in development",
    description: "Cores that a region's lobbies may use together; 0: no limit.",
  },
  {
    name: 'MUSTER_CAPACITY_MEMORY_MB',
    default: "90 % of this machine's; none in development",
    description: "Memory that a region's lobbies may use together, in MiB; 0: no limit.",
  },
  { name: 'MUSTER_DNS_SERVERS', default: "the system's", description: 'Name servers asked for names of others.' },
  {
    name: 'MUSTER_FETCH_PRIVATE_NETWORKS',
    default: '',
    description:
      "CIDR blocks that outgoing calls may reach though they are not public, or this machine's own addresses.",
  },
  {
    name: 'MUSTER_FETCH_LOCALHOST',
    default: 'off',
    description:
      "on: a game's verification endpoint may be at http://localhost:PORT on this machine. Production refuses it.",
  },
  {
    name: 'MUSTER_HCAPTCHA_URL',
    default: 'https://api.hcaptcha.com/siteverify',
    description: 'Where responses of hCaptcha are checked.',
  },
  {
    name: 'MUSTER_TURNSTILE_URL',
    default: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
    description: 'Where responses of Turnstile are checked.',
  },
  {
    name: 'MUSTER_LOGIN_TURNSTILE_SITE_KEY',
    default: '',
    description: 'Site key of a Turnstile widget. With the secret key, every login by e-mail requires a captcha.',
  },
  {
    name: 'MUSTER_LOGIN_TURNSTILE_SECRET_KEY',
    default: '',
    description: 'Secret key of that widget. Set both keys, or neither.',
  },
  {
    name: 'MUSTER_FETCH_AUTHORITIES',
    default: '',
    description: 'PEM file of authorities that outgoing calls believe beside the well-known ones.',
  },
  {
    name: 'MUSTER_RAYS_PER_SECOND',
    default: '5',
    description:
      'Ordinary requests whose ray is kept, a second and role, beside those that failed, were slow or started a lobby; 0 is off.',
  },
  { name: 'MUSTER_RATE_LIMIT_SEATS', default: '120', description: 'find, join, create a minute and client; 0 is off.' },
  { name: 'MUSTER_RATE_LIMIT_MATCHMAKER', default: '600', description: 'Other matchmaker calls a minute and client.' },
  { name: 'MUSTER_RATE_LIMIT_CLOUD', default: '1200', description: 'Cloud calls a minute and token.' },
  {
    name: 'MUSTER_RATE_LIMIT_KV',
    default: '6000',
    description: 'Reads and writes of entries a minute and lobby or client.',
  },
  { name: 'MUSTER_QUOTA_GAMES', default: '100', description: 'Games that a group may have; 0 is off.' },
  { name: 'MUSTER_QUOTA_NAMESPACES', default: '1000', description: "Namespaces of all of a group's games; 0 is off." },
  { name: 'MUSTER_QUOTA_BUILDS', default: '1000', description: "Builds of all of a group's games; 0 is off." },
  { name: 'MUSTER_QUOTA_SITES', default: '1000', description: "Sites of all of a group's games; 0 is off." },
  {
    name: 'MUSTER_QUOTA_STORAGE_MB',
    default: '100000',
    description: 'What a group may store, in 10^6 bytes; 0 is off.',
  },
  { name: 'MUSTER_QUOTA_DOMAINS', default: '100', description: "Custom domains of all of a group's games; 0 is off." },
  {
    name: 'MUSTER_DOMAIN_QUARANTINE_DAYS',
    default: '30',
    description: 'How long a custom domain stays reserved for the group that has given it up; 0 is off.',
  },
  {
    name: 'MUSTER_QUOTA_GUESTS',
    default: '1000000',
    description: 'Guests of a namespace, counted once a minute; 0 is off.',
  },
  { name: 'MUSTER_QUOTA_MEMBERS', default: '256', description: 'Members of a group, 256 at most; 0 is as many.' },
  { name: 'MUSTER_KV_ENTRIES_MAX', default: '1000000', description: 'Entries that a namespace may keep.' },
  { name: 'MUSTER_KV_MB_MAX', default: '1000', description: 'Megabytes of keys and values that a namespace may keep.' },
  {
    name: 'MUSTER_UPLOAD_RATE_MIN',
    default: '1024',
    description: 'Bytes a second; who sends slower is cut off. 0 is off.',
  },
  { name: 'MUSTER_UPLOAD_CONCURRENCY_MAX', default: '128', description: 'Files of a group that arrive at once.' },
  {
    name: 'MUSTER_CHECK_STORED_DAYS',
    default: '7',
    description: 'Days in which every stored byte is compared with its hash once; 0 is off.',
  },
  { name: 'MUSTER_UPLOAD_DISK_FREE_MB_MIN', default: '2000', description: 'What uploads leave free, in 10^6 bytes.' },
  {
    name: 'MUSTER_LOBBY_DISK_FREE_MB_MIN',
    default: '1000',
    description: "With less free on a runner's disk, in 10^6 bytes, no lobby is opened; 0 is off.",
  },
  {
    name: 'MUSTER_LOGS_MB_MAX',
    default: '2000',
    description: "Logs of ended lobbies on a runner's disk, in 10^6 bytes; the oldest go first. 0 is off.",
  },
  {
    name: 'MUSTER_RETENTION_UPLOADS_HOURS',
    default: '24',
    description: 'Uploads that were not completed; 0 is for ever.',
  },
  { name: 'MUSTER_RETENTION_OBJECTS_HOURS', default: '1', description: 'Bytes of what was deleted.' },
  {
    name: 'MUSTER_RETENTION_JOURNAL_HOURS',
    default: '72',
    description: 'Rows of the journal that everybody has read; 0 is for ever, as for all that follow.',
  },
  { name: 'MUSTER_RETENTION_PLAYERS_DAYS', default: '30', description: 'Players who left.' },
  { name: 'MUSTER_RETENTION_LOBBIES_DAYS', default: '30', description: 'Lobbies that have stopped.' },
  {
    name: 'MUSTER_RETENTION_IDENTITIES_DAYS',
    default: '400',
    description:
      'Guests of games, from when they were last seen; never less than 182, while a token of theirs may be good.',
  },
  {
    name: 'MUSTER_RETENTION_RUNS_DAYS',
    default: '400',
    description: 'Runs that have ended, which usage is told from.',
  },
  {
    name: 'MUSTER_RETENTION_EVENTS_DAYS',
    default: '30',
    description: 'Events of analytics, and what is told of them in steps shorter than an hour.',
  },
  { name: 'MUSTER_RETENTION_ANALYTICS_DAYS', default: '1000', description: 'What analytics tell of hours and days.' },
  { name: 'MUSTER_RETENTION_RAYS_DAYS', default: '7', description: 'Rays that are kept to be explained.' },
  { name: 'MUSTER_RETENTION_TOKENS_DAYS', default: '30', description: 'Tokens that have expired.' },
  { name: 'MUSTER_RETENTION_SESSIONS_DAYS', default: '30', description: 'Sessions that have ended.' },
  { name: 'MUSTER_RETENTION_LOGIN_CODES_HOURS', default: '24', description: 'Login codes, from when they were sent.' },
  { name: 'MUSTER_RETENTION_DEVICE_LINKS_HOURS', default: '2', description: 'Device links that are complete.' },
  { name: 'MUSTER_RETENTION_INVITES_DAYS', default: '30', description: 'Invites that have expired.' },
  { name: 'MUSTER_RETENTION_JOBS_DAYS', default: '30', description: 'Jobs that failed for the last time.' },
  { name: 'MUSTER_RETENTION_BUILDS_DAYS', default: '7', description: 'Unpacked builds that no lobby runs on.' },
  { name: 'MUSTER_RETENTION_LOGS_DAYS', default: '7', description: 'Logs of lobbies that have ended.' },
  {
    name: 'MUSTER_RATE_LIMIT_LOGIN',
    default: '20',
    description: 'Login codes a quarter of an hour and client; 0 is off.',
  },
  {
    name: 'MUSTER_RATE_LIMIT_GUESTS',
    default: '2',
    description: 'New guests a minute and client, beyond the first 512; 0 is off.',
  },
  { name: 'MUSTER_ACCESS', default: 'private', description: 'Who may make groups: public (who logs in) or private.' },
  {
    name: 'MUSTER_SMTP_URL',
    default: '',
    description:
      'smtp:// or smtps://, for login codes. Without it, development shows codes in the log; production has no login by e-mail.',
  },
  { name: 'MUSTER_MAIL_FROM', default: 'no-reply at the main domain', description: 'Whom mail comes from.' },
  {
    name: 'MUSTER_IP_DATA',
    default: 'ip-data in MUSTER_DATA',
    description: 'Folder of lists and mmdb files that say what an address is.',
  },
  {
    name: 'MUSTER_IP_FEEDS',
    default: '',
    description: 'Published lists, CLASS=URL with a class of hosting, proxy, tor, vpn.',
  },
  { name: 'MUSTER_IP_FEED_HOURS', default: '6', description: 'Between two fetches of a published list.' },
  { name: 'MUSTER_IP_SEED', default: 'on', description: 'Hosting providers that come with the platform: on or off.' },
  {
    name: 'MUSTER_TRUSTED_PROXIES',
    default: '',
    description:
      'CIDR blocks of proxies on other machines whose X-Forwarded-For and X-Forwarded-Proto are believed. Loopback addresses are refused.',
  },
  {
    name: 'MUSTER_EDGE_SOCKET',
    default: '',
    description:
      'Path of a unix socket of the edge for a proxy on this machine, whose X-Forwarded-For and X-Forwarded-Proto are believed (docs/deploying.md).',
  },
  { name: 'MUSTER_SANDBOX', default: 'available', description: 'bubblewrap for lobbies: required, available or off.' },
  { name: 'MUSTER_LOG_LEVEL', default: 'info', description: 'debug, info, warn, error or silent.' },
] as const satisfies readonly Setting[]

/** What clients of a platform are told by; a developer's shell may well have them while he starts one. */
const CLIENT_SETTINGS: ReadonlySet<string> = new Set(['MUSTER_URL', 'MUSTER_TOKEN'])

type SettingName = (typeof SETTINGS)[number]['name']

/** The exit code of a program whose configuration has mistakes: starting it again changes nothing. */
export const CONFIG_EXIT_CODE = 2

/** Every mistake of the environment at once, a line each. */
export class ConfigError extends Error {
  readonly mistakes: readonly string[]
  constructor(mistakes: readonly string[]) {
    super(`The configuration has ${mistakes.length} mistake(s):\n${mistakes.map((line) => `  ${line}`).join('\n')}`)
    this.name = 'ConfigError'
    this.mistakes = mistakes
  }
}

/** Throws a ConfigError. Settings that begin with MUSTER_ and are not known are mistakes too. */
export function readConfig(env: Record<string, string | undefined>): Config {
  const mistakes: string[] = []
  const known = new Set<string>(SETTINGS.map((setting) => setting.name))
  for (const name of Object.keys(env)) {
    if (name.startsWith('MUSTER_') && !known.has(name) && !CLIENT_SETTINGS.has(name))
      mistakes.push(`${name} is not a setting.${didYouMean(name, [...known])}`)
  }
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0') {
    mistakes.push(
      'NODE_TLS_REJECT_UNAUTHORIZED switches off what TLS is for; MUSTER_FETCH_AUTHORITIES adds authorities.',
    )
  }
  const text = (name: SettingName, otherwise: string): string => env[name]?.trim() || otherwise
  const integer = (name: SettingName, otherwise: number, max: number): number => {
    const value = text(name, String(otherwise))
    if (/^\d{1,9}$/.test(value) && Number(value) <= max) return Number(value)
    mistakes.push(`${name} must be a whole number from 0 to ${max}, not ${JSON.stringify(value)}.`)
    return otherwise
  }
  const oneOf = <T extends string>(name: SettingName, allowed: readonly T[], otherwise: T): T => {
    const value = text(name, otherwise)
    const found = allowed.find((item) => item === value)
    if (found === undefined)
      mistakes.push(`${name} must be one of ${allowed.join(', ')}, not ${JSON.stringify(value)}.`)
    return found ?? otherwise
  }
  const domain = (name: SettingName, otherwise: string): string => {
    const value = text(name, otherwise).toLowerCase()
    // A last label of digits makes it an address: raw ports are reached at addresses too, and would share it.
    const is_name =
      /^(?!-)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*$/.test(value) && !/(?:^|\.)(?:\d+|0x[0-9a-f]*)$/.test(value)
    if (!is_name) mistakes.push(`${name} is not a domain name.`)
    return value
  }
  const list = (name: SettingName): string[] =>
    text(name, '')
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '')

  const ranges = (name: SettingName, otherwise: string): PortRange[] =>
    text(name, otherwise)
      .split(',')
      .filter((item) => item.trim() !== '')
      .map((item) => {
        const [, first, last] = /^\s*(\d{1,5})\s*-\s*(\d{1,5})\s*$/.exec(item) ?? []
        const range = { min: Number(first ?? 0), max: Number(last ?? 0) }
        if (range.min >= 1_024 && range.min <= range.max && range.max <= 65_535) return range
        mistakes.push(`${name} names ${JSON.stringify(item)}, which is not a range within 1024-65535.`)
        return range
      })

  const domains = {
    main: domain('MUSTER_DOMAIN_MAIN', 'localhost'),
    cdn: domain('MUSTER_DOMAIN_CDN', 'cdn.localhost'),
    job: domain('MUSTER_DOMAIN_JOB', 'localhost'),
  }
  const mode = domains.main === 'localhost' ? 'development' : 'production'
  if (mode === 'production' && new Set(Object.values(domains).map(registrableDomain)).size < 3) {
    mistakes.push(
      'MUSTER_DOMAIN_MAIN, MUSTER_DOMAIN_CDN and MUSTER_DOMAIN_JOB must be three different registrable domains: ' +
        'what strangers upload must not share cookies with the hub.',
    )
  }

  for (const name of ['MUSTER_DOMAIN_CDN', 'MUSTER_DOMAIN_JOB'] as const) {
    const value = name === 'MUSTER_DOMAIN_CDN' ? domains.cdn : domains.job
    if (mode === 'production' && /(?:^|\.)localhost$/.test(value)) {
      mistakes.push(`${name} is ${value}, which is the visitor's own machine: production needs a domain of yours.`)
    }
  }

  const roles = text('MUSTER_ROLES', ROLES.join(','))
    .split(',')
    .map((item) => item.trim())
  for (const role of roles) {
    if (!ROLES.some((item) => item === role))
      mistakes.push(`MUSTER_ROLES names ${JSON.stringify(role)}, which is not a role.`)
  }

  const database_url = text('DATABASE_URL', '') || null
  if (database_url !== null && !/^postgres(ql)?:\/\//.test(database_url)) {
    mistakes.push('DATABASE_URL must begin with postgres://.')
  }

  const smtp_url = text('MUSTER_SMTP_URL', '') || null
  if (smtp_url !== null && !(/^smtps?:\/\//.test(smtp_url) && URL.canParse(smtp_url))) {
    mistakes.push('MUSTER_SMTP_URL must begin with smtp:// or smtps://.')
  }

  const sandbox = oneOf(
    'MUSTER_SANDBOX',
    ['required', 'available', 'off'] as const,
    mode === 'production' ? 'required' : 'available',
  )
  if (mode === 'production' && sandbox !== 'required') mistakes.push('MUSTER_SANDBOX must be required in production.')

  const machine = thisMachine()
  const own = machineCapacity(machine)
  // A developer tries more lobbies than a laptop has cores, one player in each.
  const is_development = mode === 'development'
  const capacity = {
    cpu_cores: integer('MUSTER_CAPACITY_CORES', is_development ? 0 : own.cpu_cores, 1_000_000) || null,
    memory_mb: integer('MUSTER_CAPACITY_MEMORY_MB', is_development ? 0 : own.memory_mb, 999_999_999) || null,
  }
  const data_dir = resolve(text('MUSTER_DATA', './.muster'))
  const nameServers = (name: SettingName): string[] => {
    const servers = list(name)
    for (const server of servers) {
      const address = /^(?:\[(?<v6>[0-9a-f:]+)\]|(?<v4>[0-9.]+))(?::\d{1,5})?$/i.exec(server)?.groups
      if (isIP(address?.v6 ?? address?.v4 ?? server) === 0) {
        mistakes.push(`${name} names ${JSON.stringify(server)}, which is not an address.`)
      }
    }
    return servers
  }
  const dns_servers = nameServers('MUSTER_DNS_SERVERS')
  const fetch_private_networks = list('MUSTER_FETCH_PRIVATE_NETWORKS')
  for (const network of fetch_private_networks) {
    const [address = '', bits = '', ...rest] = network.split('/')
    const bits_max = isIP(address) === 4 ? 32 : 128
    if (isIP(address) === 0 || rest.length > 0 || !/^\d{1,3}$/.test(bits) || Number(bits) > bits_max) {
      mistakes.push(`MUSTER_FETCH_PRIVATE_NETWORKS names ${JSON.stringify(network)}, which is not a CIDR block.`)
    }
  }
  const fetch_localhost = oneOf('MUSTER_FETCH_LOCALHOST', ['on', 'off'] as const, 'off') === 'on'
  if (fetch_localhost && mode === 'production') {
    mistakes.push('MUSTER_FETCH_LOCALHOST must be off in production: games could call the services of this machine.')
  }
  const address = (name: SettingName): string => {
    const value = text(name, SETTINGS.find((setting) => setting.name === name)!.default)
    if (!(/^https?:\/\//.test(value) && URL.canParse(value))) mistakes.push(`${name} must be an http(s):// address.`)
    return value
  }
  const [edge_range = { min: 0, max: 0 }, ...more_ranges] = ranges('MUSTER_EDGE_PORTS', '26000-31999')
  if (more_ranges.length > 0) mistakes.push('MUSTER_EDGE_PORTS is one range.')
  const spare = integer('MUSTER_EDGE_PORTS_SPARE', EDGE_PORTS_SPARE_DEFAULT, 6_000)
  if (spare < EDGE_PORTS_SPARE_MIN) {
    mistakes.push(`MUSTER_EDGE_PORTS_SPARE must be ${EDGE_PORTS_SPARE_MIN} at least: a lobby may have as many ports.`)
  }
  const edge_ports_host = text('MUSTER_EDGE_PORTS_HOST', mode === 'development' ? RAW_PORTS_LOOPBACK : '') || null
  if (edge_ports_host !== null && isIP(edge_ports_host) === 0) {
    mistakes.push(`MUSTER_EDGE_PORTS_HOST is ${JSON.stringify(edge_ports_host)}, which is not an address.`)
  } else if (mode === 'development' && (LOOPBACK.has(edge_ports_host!) || !edge_ports_host!.startsWith('127.'))) {
    mistakes.push(
      'MUSTER_EDGE_PORTS_HOST must be in 127.0.0.0/8 in development, and not 127.0.0.1: ' +
        'a browser sends the cookies of the hub to every port of its host.',
    )
  }
  const host_port_ranges = ranges('MUSTER_HOST_PORT_RANGES', '')
  for (const range of host_port_ranges) {
    if (range.min <= LOBBY_PORTS.max && range.max >= LOBBY_PORTS.min) {
      mistakes.push(
        `MUSTER_HOST_PORT_RANGES must keep out of ${LOBBY_PORTS.min}-${LOBBY_PORTS.max}, which lobbies have.`,
      )
    }
  }
  const otlp_url = text('MUSTER_OTLP_URL', '')
  if (otlp_url !== '' && !(/^https?:\/\//.test(otlp_url) && URL.canParse(otlp_url))) {
    mistakes.push('MUSTER_OTLP_URL must be an http(s):// address.')
  }
  const metrics_port = integer('MUSTER_METRICS_PORT', 9480, 65_535 - ROLES.length)
  const metrics = { host: text('MUSTER_METRICS_HOST', '127.0.0.1'), token: text('MUSTER_METRICS_TOKEN', '') || null }
  if (metrics_port !== 0 && metrics.token === null && !LOOPBACK.has(metrics.host)) {
    mistakes.push('MUSTER_METRICS_HOST is not loopback: MUSTER_METRICS_TOKEN says who may read the metrics there.')
  }
  const edge_http_port = integer('MUSTER_EDGE_HTTP_PORT', 80, 65535)
  const edge_https_port = integer('MUSTER_EDGE_HTTPS_PORT', 443, 65535)
  const certificates_dir = text('MUSTER_TLS_CERTIFICATES', '')
  const acme_url = text('MUSTER_ACME', '')
  if (acme_url !== '' && !(/^https:\/\//.test(acme_url) && URL.canParse(acme_url)))
    mistakes.push('MUSTER_ACME must begin with https://.')
  if (acme_url !== '' && mode === 'development')
    mistakes.push('MUSTER_ACME needs a MUSTER_DOMAIN_MAIN: nobody certifies localhost.')
  const acme_email = text('MUSTER_ACME_EMAIL', '')
  if (acme_email !== '' && !/^[^\s@,]+@[^\s@,]+$/.test(acme_email))
    mistakes.push('MUSTER_ACME_EMAIL is not an address.')
  const acme_dns = readAcmeDns(
    {
      servers: nameServers('MUSTER_ACME_DNS_SERVER'),
      key_file: text('MUSTER_ACME_DNS_KEY', ''),
      hook: text('MUSTER_ACME_DNS_HOOK', ''),
      domains: list('MUSTER_ACME_DNS_FOR'),
      check_servers: nameServers('MUSTER_ACME_DNS_CHECK'),
      is_ordering: roles.includes('api'),
    },
    mistakes,
  )
  if (acme_dns !== null && acme_url === '')
    mistakes.push('MUSTER_ACME_DNS_SERVER and MUSTER_ACME_DNS_HOOK need MUSTER_ACME, the authority that is asked.')
  const public_scheme = oneOf(
    'MUSTER_PUBLIC_SCHEME',
    ['http', 'https'] as const,
    mode === 'production' ? 'https' : 'http',
  )
  if (mode === 'production' && public_scheme === 'http' && (certificates_dir !== '' || acme_url !== '')) {
    mistakes.push(
      'MUSTER_PUBLIC_SCHEME must be https where MUSTER_TLS_CERTIFICATES or MUSTER_ACME is set: ' +
        'over http a browser does not hold a session cookie to its host.',
    )
  }
  const trusted_proxies = list('MUSTER_TRUSTED_PROXIES')
  for (const cidr of trusted_proxies) {
    const block = readBlock(cidr)
    if (block === null)
      mistakes.push(`MUSTER_TRUSTED_PROXIES names ${JSON.stringify(cidr)}, which is not a CIDR block.`)
    else if (hasLoopback(block)) mistakes.push(LOOPBACK_PROXY)
  }
  const edge_socket = text('MUSTER_EDGE_SOCKET', '')
  if (edge_socket !== '' && (!isAbsolute(edge_socket) || Buffer.byteLength(edge_socket) > SOCKET_PATH_BYTES_MAX)) {
    mistakes.push(`MUSTER_EDGE_SOCKET must be an absolute path of at most ${SOCKET_PATH_BYTES_MAX} bytes.`)
  }
  const config: Config = {
    mode,
    node_id: `${hostname()}:${data_dir}`,
    data_dir,
    roles: ROLES.filter((role) => roles.includes(role)),
    database_url,
    domains,
    internal_host: text('MUSTER_INTERNAL_HOST', '127.0.0.1'),
    api_port: integer('MUSTER_API_PORT', 8080, 65535),
    matchmaker_port: integer('MUSTER_MATCHMAKER_PORT', 8081, 65535),
    lobby_api_port: integer('MUSTER_LOBBY_API_PORT', 8082, 65535),
    metrics:
      metrics_port === 0 ? null : { ...metrics, port: metrics_port + ROLES.findIndex((role) => roles.includes(role)) },
    drain_ms: integer('MUSTER_DRAIN_SECONDS', 0, DRAIN_SECONDS_MAX) * 1_000,
    otlp: otlp_url === '' ? null : { url: otlp_url, headers: readHeaders(list('MUSTER_OTLP_HEADERS'), mistakes) },
    edge_http_port,
    edge_https_port,
    advertised_http_port: integer('MUSTER_ADVERTISED_HTTP_PORT', edge_http_port, 65535),
    advertised_https_port: integer('MUSTER_ADVERTISED_HTTPS_PORT', edge_https_port, 65535),
    public_scheme,
    certificates_dir: certificates_dir === '' ? null : resolve(certificates_dir),
    acme:
      acme_url === ''
        ? null
        : {
            directory_url: acme_url,
            email: acme_email || null,
            orders_max: integer('MUSTER_ACME_ORDERS_MAX', 200, 100_000),
            domain_orders_max: integer('MUSTER_ACME_DOMAIN_ORDERS_MAX', 45, 100_000),
            dns: acme_dns,
          },
    ...readRegions(regionsFile(env, text('MUSTER_CONFIG', DEFAULT_FILE)), capacity, machine, mistakes),
    edge_ports: { ...edge_range, spare, host: edge_ports_host },
    host_port_ranges,
    proxy_protocol_from: list('MUSTER_PROXY_PROTOCOL_FROM'),
    dns_servers,
    fetch_private_networks,
    fetch_localhost,
    fetch_authorities: readAuthorities(text('MUSTER_FETCH_AUTHORITIES', ''), mistakes),
    login_turnstile: readLoginTurnstile(
      text('MUSTER_LOGIN_TURNSTILE_SITE_KEY', ''),
      text('MUSTER_LOGIN_TURNSTILE_SECRET_KEY', ''),
      mistakes,
    ),
    captcha_urls: { hcaptcha: address('MUSTER_HCAPTCHA_URL'), turnstile: address('MUSTER_TURNSTILE_URL') },
    rate_limits: {
      seats_per_minute: integer('MUSTER_RATE_LIMIT_SEATS', 120, 1_000_000),
      matchmaker_per_minute: integer('MUSTER_RATE_LIMIT_MATCHMAKER', 600, 1_000_000),
      cloud_per_minute: integer('MUSTER_RATE_LIMIT_CLOUD', 1200, 1_000_000),
      kv_per_minute: integer('MUSTER_RATE_LIMIT_KV', 6_000, 1_000_000),
      logins_per_quarter_hour: integer('MUSTER_RATE_LIMIT_LOGIN', 20, 1_000_000),
      guests_per_minute: integer('MUSTER_RATE_LIMIT_GUESTS', 2, 1_000_000),
    },
    rays_per_second: integer('MUSTER_RAYS_PER_SECOND', 5, 100) || null,
    quotas: {
      games: integer('MUSTER_QUOTA_GAMES', 100, 1_000_000) || null,
      namespaces: integer('MUSTER_QUOTA_NAMESPACES', 1_000, 1_000_000) || null,
      builds: integer('MUSTER_QUOTA_BUILDS', 1_000, 1_000_000) || null,
      sites: integer('MUSTER_QUOTA_SITES', 1_000, 1_000_000) || null,
      bytes: integer('MUSTER_QUOTA_STORAGE_MB', 100_000, 100_000_000) * MB || null,
      domains: integer('MUSTER_QUOTA_DOMAINS', 100, 1_000_000) || null,
      members: integer('MUSTER_QUOTA_MEMBERS', MEMBERS_MAX, MEMBERS_MAX) || MEMBERS_MAX,
    },
    domain_quarantine_ms: integer('MUSTER_DOMAIN_QUARANTINE_DAYS', 30, 10_000) * DAY_MS,
    guests_max: integer('MUSTER_QUOTA_GUESTS', 1_000_000, 1_000_000_000) || null,
    kv: {
      entries_max: integer('MUSTER_KV_ENTRIES_MAX', 1_000_000, 100_000_000),
      bytes_max: integer('MUSTER_KV_MB_MAX', 1_000, 100_000_000) * MB,
    },
    uploads: {
      bytes_per_second_min: integer('MUSTER_UPLOAD_RATE_MIN', 1_024, 100_000_000),
      group_concurrency_max: integer('MUSTER_UPLOAD_CONCURRENCY_MAX', 128, 10_000),
      disk_free_bytes_min: integer('MUSTER_UPLOAD_DISK_FREE_MB_MIN', 2_000, 100_000_000) * MB,
    },
    check_ms: integer('MUSTER_CHECK_STORED_DAYS', 7, 10_000) * DAY_MS || null,
    lobbies: {
      disk_free_bytes_min: integer('MUSTER_LOBBY_DISK_FREE_MB_MIN', 1_000, 100_000_000) * MB,
      ended_logs_bytes_max: integer('MUSTER_LOGS_MB_MAX', 2_000, 100_000_000) * MB || null,
    },
    retention: {
      abandoned_uploads_ms: integer('MUSTER_RETENTION_UPLOADS_HOURS', 24, 100_000) * HOUR_MS || null,
      removed_objects_ms: integer('MUSTER_RETENTION_OBJECTS_HOURS', 1, 100_000) * HOUR_MS,
      journal_ms: integer('MUSTER_RETENTION_JOURNAL_HOURS', 72, 100_000) * HOUR_MS || null,
      players_ms: integer('MUSTER_RETENTION_PLAYERS_DAYS', 30, 10_000) * DAY_MS || null,
      identities_ms: integer('MUSTER_RETENTION_IDENTITIES_DAYS', 400, 10_000) * DAY_MS || null,
      lobbies_ms: integer('MUSTER_RETENTION_LOBBIES_DAYS', 30, 10_000) * DAY_MS || null,
      rays_ms: integer('MUSTER_RETENTION_RAYS_DAYS', 7, 10_000) * DAY_MS || null,
      runs_ms: integer('MUSTER_RETENTION_RUNS_DAYS', 400, 10_000) * DAY_MS || null,
      events_ms: integer('MUSTER_RETENTION_EVENTS_DAYS', 30, 10_000) * DAY_MS || null,
      analytics_ms: integer('MUSTER_RETENTION_ANALYTICS_DAYS', 1_000, 10_000) * DAY_MS || null,
      tokens_ms: integer('MUSTER_RETENTION_TOKENS_DAYS', 30, 10_000) * DAY_MS || null,
      sessions_ms: integer('MUSTER_RETENTION_SESSIONS_DAYS', 30, 10_000) * DAY_MS || null,
      login_codes_ms: integer('MUSTER_RETENTION_LOGIN_CODES_HOURS', 24, 100_000) * HOUR_MS || null,
      device_links_ms: integer('MUSTER_RETENTION_DEVICE_LINKS_HOURS', 2, 100_000) * HOUR_MS || null,
      invites_ms: integer('MUSTER_RETENTION_INVITES_DAYS', 30, 10_000) * DAY_MS || null,
      jobs_ms: integer('MUSTER_RETENTION_JOBS_DAYS', 30, 10_000) * DAY_MS || null,
      builds_ms: integer('MUSTER_RETENTION_BUILDS_DAYS', 7, 10_000) * DAY_MS || null,
      logs_ms: integer('MUSTER_RETENTION_LOGS_DAYS', 7, 10_000) * DAY_MS || null,
    },
    access: oneOf('MUSTER_ACCESS', ['public', 'private'] as const, 'private'),
    mail: smtp_url === null ? null : { smtp_url, from: text('MUSTER_MAIL_FROM', `Muster <no-reply@${domains.main}>`) },
    ip_data: {
      folder: resolve(text('MUSTER_IP_DATA', join(data_dir, 'ip-data'))),
      has_seed: oneOf('MUSTER_IP_SEED', ['on', 'off'] as const, 'on') === 'on',
      feeds: readFeeds(list('MUSTER_IP_FEEDS'), mistakes),
      feed_interval_ms: Math.max(1, integer('MUSTER_IP_FEED_HOURS', 6, 8_760)) * HOUR_MS,
    },
    trusted_proxies,
    edge_socket: edge_socket === '' ? null : edge_socket,
    sandbox,
    log_level: oneOf('MUSTER_LOG_LEVEL', ['debug', 'info', 'warn', 'error', 'silent'] as const, 'info'),
  }
  if (mistakes.length > 0) throw new ConfigError(mistakes)
  return deepFreeze(config)
}

type Block = { address: string; family: 'ipv4' | 'ipv6'; bits: number }

/** A CIDR block or a single address; null when the text is neither. */
function readBlock(cidr: string): Block | null {
  const [address = '', prefix, ...rest] = cidr.split('/')
  const version = isIP(address)
  const bits_max = version === 4 ? 32 : 128
  const bits = prefix === undefined ? bits_max : Number(prefix)
  if (version === 0 || rest.length > 0 || (prefix !== undefined && !/^\d{1,3}$/.test(prefix)) || bits > bits_max)
    return null
  return { address, family: version === 4 ? 'ipv4' : 'ipv6', bits }
}

/** Of two blocks that overlap one has the first address of the other. */
function hasLoopback({ address, family, bits }: Block): boolean {
  const block = new BlockList()
  block.addSubnet(address, bits, family)
  const loopback = new BlockList()
  loopback.addSubnet('127.0.0.0', 8, 'ipv4')
  loopback.addAddress('::1', 'ipv6')
  return (
    loopback.check(address, family) ||
    block.check('127.0.0.0', 'ipv4') ||
    block.check('::ffff:127.0.0.0', 'ipv6') ||
    block.check('::1', 'ipv6')
  )
}

/** Their values are secrets, and are not repeated. */
function readHeaders(texts: readonly string[], mistakes: string[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const text of texts) {
    const { name, value } = /^(?<name>[A-Za-z0-9-]+)=(?<value>[\x20-\x7e]+)$/.exec(text)?.groups ?? {}
    if (name !== undefined && value !== undefined) headers[name] = value
    else mistakes.push('MUSTER_OTLP_HEADERS is not name=value, between commas.')
  }
  return headers
}

/** Null: wildcard certificates are not ordered. */
function readAcmeDns(
  settings: {
    servers: readonly string[]
    key_file: string
    hook: string
    domains: readonly string[]
    check_servers: readonly string[]
    is_ordering: boolean
  },
  mistakes: string[],
): AcmeDns | null {
  const { servers, key_file, hook, check_servers, is_ordering } = settings
  const [server, ...more] = servers
  const domains = settings.domains.flatMap((text) => ACME_DNS_DOMAINS.find((item) => item === text) ?? [])
  if (domains.length < settings.domains.length)
    mistakes.push(`MUSTER_ACME_DNS_FOR must be of ${ACME_DNS_DOMAINS.join(', ')}.`)
  const rest = { domains: domains.length === 0 ? (['job'] as const) : domains, check_servers }
  if (more.length > 0) mistakes.push('MUSTER_ACME_DNS_SERVER is one name server: the one that takes updates.')
  if ((server === undefined) !== (key_file === ''))
    mistakes.push('MUSTER_ACME_DNS_SERVER and MUSTER_ACME_DNS_KEY need each other: updates are signed.')
  if (hook !== '') {
    if (server !== undefined) mistakes.push('MUSTER_ACME_DNS_SERVER and MUSTER_ACME_DNS_HOOK exclude each other.')
    if (!isAbsolute(hook)) mistakes.push('MUSTER_ACME_DNS_HOOK must be an absolute path.')
    return { ...rest, publisher: { kind: 'hook', path: hook } }
  }
  if (server === undefined) return null
  // An edge on another machine does not need the key, and must not have it.
  const key = is_ordering && key_file !== '' ? readTsigKey(key_file, mistakes) : null
  return { ...rest, publisher: { kind: 'server', server, key } }
}

function readTsigKey(path: string, mistakes: string[]): TsigKey | null {
  try {
    return parseTsigKey(readFileSync(path, 'utf8'))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    mistakes.push(
      `MUSTER_ACME_DNS_KEY names ${path}, which ${code === undefined ? message : `cannot be read (${code})`}.`,
    )
    return null
  }
}

/** The address itself is looked at when it is called. */
function readFeeds(texts: readonly string[], mistakes: string[]): Config['ip_data']['feeds'] {
  if (texts.length > FEEDS_MAX) mistakes.push(`MUSTER_IP_FEEDS has more than ${FEEDS_MAX} lists.`)
  return texts.flatMap((text) => {
    const { name, url } = /^(?<name>[a-z]+)=(?<url>https?:\/\/.+)$/.exec(text)?.groups ?? {}
    const list_class = FEED_CLASSES.find((item) => item === name)
    if (list_class !== undefined && url !== undefined && URL.canParse(url)) return { list_class, url }
    mistakes.push(`MUSTER_IP_FEEDS names ${JSON.stringify(text)}, which is not CLASS=URL with a known class.`)
    return []
  })
}

function readLoginTurnstile(site_key: string, secret_key: string, mistakes: string[]): LoginTurnstile | null {
  if (site_key === '' && secret_key === '') return null
  if (site_key !== '' && secret_key !== '') return { site_key, secret_key }
  mistakes.push('MUSTER_LOGIN_TURNSTILE_SITE_KEY and MUSTER_LOGIN_TURNSTILE_SECRET_KEY: set both, or neither.')
  return null
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** The certificates of a PEM file, each by itself. */
function readAuthorities(path: string, mistakes: string[]): string[] {
  if (path === '') return []
  try {
    const blocks = readFileSync(path, 'utf8').match(CERTIFICATE) ?? []
    if (blocks.length === 0) mistakes.push(`MUSTER_FETCH_AUTHORITIES names ${path}, which has no certificate.`)
    return blocks.map((block) => new X509Certificate(block).toString())
  } catch (error) {
    mistakes.push(`MUSTER_FETCH_AUTHORITIES names ${path}, which cannot be read (${(error as Error).message}).`)
    return []
  }
}

const DEFAULT_FILE = './muster.toml'

/** One that is named must be there; the one that is looked for need not. */
function regionsFile(env: Record<string, string | undefined>, path: string): string | null {
  const is_named = Boolean(env.MUSTER_CONFIG?.trim())
  return is_named || existsSync(path) ? resolve(path) : null
}

/** What a registrar sells: browsers share cookies below it. Suffixes that strangers get names under count as such. */
function registrableDomain(domain: string): string {
  return getDomain(domain, { allowPrivateDomains: true }) ?? domain
}

function deepFreeze<T extends object>(value: T): T {
  for (const member of Object.values(value)) {
    if (typeof member === 'object' && member !== null) deepFreeze(member)
  }
  return Object.freeze(value)
}

/** Whether the edge itself speaks TLS: with an authority of its own on a laptop, else with certificates that it is given. */
export function hasHttps(config: Config): boolean {
  return config.mode === 'development' || config.certificates_dir !== null || config.acme !== null
}

/** Below which names certificates may be ordered for: the platform's own hosts, and what stands before the CDN's domain. */
export function certifiedHosts(config: Pick<Config, 'domains' | 'regions' | 'acme'>): {
  own: readonly string[]
  cdn: string
} {
  const { domains, regions } = config
  const raw_hosts = regions.map(({ name }) => rawPortsHost(domains, name))
  return { own: [domains.main, mediaHost(domains), ...raw_hosts, ...wildcardNames(config)], cdn: domains.cdn }
}

/** The names that wildcard certificates are ordered for; `*.` stands for one label. */
export function wildcardNames({ domains, regions, acme }: Pick<Config, 'domains' | 'regions' | 'acme'>): string[] {
  const of_domains = acme?.dns?.domains ?? []
  return [
    ...(of_domains.includes('job') ? regions.map(({ name }) => lobbyWildcard(domains, name)) : []),
    ...(of_domains.includes('cdn') ? [`*.${domains.cdn}`] : []),
  ]
}

/** What a certificate for the hosts of a region's lobbies names. */
export function lobbyWildcard({ job }: Config['domains'], region: string): string {
  return `*.lobby.${region.toLowerCase()}.${job}`
}

/** The wildcard that would cover the host. */
export function wildcardOf(host: string): string {
  return `*${host.slice(host.indexOf('.'))}`
}

/** Whether somebody can receive a login code: by mail, or in development in the log. */
export function hasEmailLogin({ mail, mode }: Config): boolean {
  return mail !== null || mode === 'development'
}

/** The main address as players and developers are told it: hub, API and matchmaker, and lobbies by the path route. */
export function mainUrl(config: Config): string {
  return publicUrl(config, config.domains.main)
}

const STANDARD_PORT = { http: 80, https: 443 } as const

/** The address of a host of ours, with the advertised port when it is not the scheme's own. */
export function publicUrl(
  config: Pick<Config, 'public_scheme' | 'advertised_http_port' | 'advertised_https_port'>,
  host: string,
  scheme: 'http' | 'https' = config.public_scheme,
): string {
  const port = scheme === 'https' ? config.advertised_https_port : config.advertised_http_port
  return `${scheme}://${host}${port === STANDARD_PORT[scheme] ? '' : `:${port}`}`
}

/**
 * The host under which TLS clients reach the raw ports of a region. It stands beside the lobbies' own hosts, so the DNS record
 * and the wildcard certificate of these cover it. Unlike them it lives long enough for a certificate of its own.
 */
export function rawPortsHost({ job }: Config['domains'], region: string): string {
  return `ports.lobby.${region.toLowerCase()}.${job}`
}

/**
 * The host of all games' pictures: under the CDN's domain, where nothing that is uploaded comes near the hub, but no
 * game's. Its label is longer than a name id may be.
 */
export function mediaHost(domains: Config['domains']): string {
  return `muster-game-media.${domains.cdn}`
}
