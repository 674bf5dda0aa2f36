// The settings, which are environment variables: the one table of their names, kinds, defaults and limits. read.ts reads
// values by it, and docs/configuration.md is generated from it.

import { PROCESSES_MAX } from './processes.ts'
import { PLACEMENTS } from './regions.ts'
import { ROLES } from './roles.ts'

type Text = {
  doc: string
  /** What the documentation shows as the default, where `default` does not say it. */
  default_doc?: string
  /** The value is a credential, or may contain one: it is never shown. */
  is_secret?: true
}
type NumberKind = 'integer' | 'seconds' | 'hours' | 'days' | 'megabytes'
type TextKind = 'text' | 'list' | 'domain' | 'url' | 'name_servers' | 'port_ranges'

export type Setting = Text &
  (
    | { kind: TextKind; default: string }
    /** A null default is worked out from other settings. The last four kinds are read as milliseconds and bytes. */
    | { kind: NumberKind; default: number | null; max: number }
    | { kind: 'choice'; of: readonly string[]; default: string | null }
  )

/** Classes of addresses that a published list can name. */
export const FEED_CLASSES = ['hosting', 'proxy', 'tor', 'vpn'] as const

/** GROUP_MEMBERS_MAX of the contract: one response lists all members of a group. */
export const MEMBERS_MAX = 256
/** Largest port number. */
const PORT_MAX = 65_535
/** The processes of one machine listen on ports that follow each other. */
const METRICS_PORT_MAX = PORT_MAX - ROLES.length * PROCESSES_MAX
/** A service manager gives a program a minute to stop. */
const DRAIN_SECONDS_MAX = 30
/** A node that is away for an hour is gone. */
const NODE_GRACE_SECONDS_MAX = 3_600
/** A week: longer than any match. */
const RETIRE_SECONDS_MAX = 604_800
/** Largest setting in hours. */
const HOURS_MAX = 100_000
/** Largest setting in days. */
const DAYS_MAX = 10_000
/** A published list is fetched at least once a year. */
const FEED_HOURS_MAX = 8_760
/** Largest rate limit, per minute. */
const RATE_MAX = 1_000_000
/** Largest quota of a group. */
const QUOTA_MAX = 1_000_000
/** Largest quota of guests of a namespace. */
const GUESTS_MAX = 999_999_999
/** Largest quota of entries of a namespace. */
const KV_ENTRIES_MAX = 100_000_000
/** Largest setting in megabytes. */
const MEGABYTES_MAX = 100_000_000
/** Largest budget of certificate orders. */
const ORDERS_MAX = 100_000
/** The whole default range of `MUSTER_EDGE_PORTS`. */
const SPARE_PORTS_MAX = 6_000
/** Ordinary rays stored per second and role. */
const RAYS_MAX = 100
/** Cores of a region. */
const CORES_MAX = 1_000_000
/** Memory of a region. */
const MEMORY_MIB_MAX = 999_999_999
/** Largest minimum rate of uploads, in bytes per second. */
const UPLOAD_RATE_MAX = 100_000_000
/** Files of a group in transfer at once. */
const UPLOAD_CONCURRENCY_MAX = 10_000

/** Returns what makes an entry of a kind, with its default. */
function textSetting<Kind extends TextKind>(kind: Kind) {
  return (value: string, rest: Text) => ({ kind, default: value, ...rest })
}

/** The largest value is that of the kind, unless the entry has its own. */
function numberSetting<Kind extends NumberKind>(kind: Kind, max: number) {
  return <const Value extends number | null>(value: Value, rest: Text & { max?: number }) => {
    return { kind, default: value, max, ...rest }
  }
}

function choice<const Of extends readonly string[], const Value extends string | null>(
  of: Of,
  value: Value,
  rest: Text,
) {
  return { kind: 'choice' as const, of, default: value, ...rest }
}

const text = textSetting('text')
const list = textSetting('list')
const domain = textSetting('domain')
const url = textSetting('url')
const nameServers = textSetting('name_servers')
const portRanges = textSetting('port_ranges')
const integer = numberSetting('integer', Number.MAX_SAFE_INTEGER)
const port = numberSetting('integer', PORT_MAX)
const rate = numberSetting('integer', RATE_MAX)
const quota = numberSetting('integer', QUOTA_MAX)
const seconds = numberSetting('seconds', Number.MAX_SAFE_INTEGER)
const hours = numberSetting('hours', HOURS_MAX)
const days = numberSetting('days', DAYS_MAX)
const megabytes = numberSetting('megabytes', MEGABYTES_MAX)

export const SETTINGS = {
  MUSTER_DATA: text('./.muster', { doc: 'Data folder: everything that must survive a restart.' }),
  MUSTER_ROLES: text(ROLES.join(), { doc: `Roles of this process: any of ${ROLES.join(', ')}.` }),
  MUSTER_NODE: text('', {
    default_doc: 'host name and data folder',
    doc: 'Name of this node: lower-case letters, digits and hyphens, 32 characters at most.',
  }),
  MUSTER_NODE_GRACE_SECONDS: seconds(60, {
    max: NODE_GRACE_SECONDS_MAX,
    doc: 'How long lobbies keep their seats while their node does not report; then they end.',
  }),
  MUSTER_RUNNER_REGIONS: list('', {
    default_doc: 'all',
    doc: 'Regions whose lobbies this node runs, and in which its edge stands.',
  }),
  DATABASE_URL: text('', {
    is_secret: true,
    doc: 'External PostgreSQL (`postgres://`); with standbys `postgres://USER:PASSWORD@HOST1,HOST2/NAME`. Empty: the embedded one.',
  }),
  MUSTER_DATABASE_LISTEN_URL: text('', {
    is_secret: true,
    doc: 'The same PostgreSQL for notifications (LISTEN), where `DATABASE_URL` names a pooler that does not pass them on. Empty: `DATABASE_URL`.',
  }),
  MUSTER_LINK: text('', {
    doc: 'Unix socket of the link to the platform. `muster start` sets it for the roles of a node that has joined.',
  }),
  MUSTER_DOMAIN_MAIN: domain('localhost', { doc: 'Domain of the hub, the API and the matchmaker.' }),
  MUSTER_DOMAIN_CDN: domain('cdn.localhost', { doc: "Parent domain of the games' sites." }),
  MUSTER_DOMAIN_JOB: domain('localhost', { doc: 'Parent domain of the hosts of lobbies.' }),
  MUSTER_INTERNAL_HOST: text('127.0.0.1', {
    doc: 'Address that api and matchmaker listen on. The edge and lobbies connect to it.',
  }),
  MUSTER_INTERNAL_PLAIN_FROM: list('', {
    doc: 'CIDR blocks of other machines that may call api and matchmaker without TLS. Processes of the platform do not need it.',
  }),
  MUSTER_API_PORT: port(8_080, { doc: 'Port of the api role.' }),
  MUSTER_MATCHMAKER_PORT: port(8_081, { doc: 'Port of the matchmaker role.' }),
  MUSTER_LOBBY_API_PORT: port(8_082, { doc: 'Port where the matchmaker role serves lobbies (`PLATFORM_API_URL`).' }),
  MUSTER_MATCHMAKER_PROCESSES: integer(1, {
    max: PROCESSES_MAX,
    doc: 'Matchmaker processes that `muster start` runs on this machine. They share the namespaces. The second one listens on the port after MUSTER_LOBBY_API_PORT, and so on.',
  }),
  MUSTER_EDGE_PROCESSES: integer(1, {
    max: PROCESSES_MAX,
    doc: 'Edge processes that `muster start` runs on this machine. They share the ports of HTTP and HTTPS, and each has a part of MUSTER_EDGE_PORTS. Limits per client hold for all of them together. In production, without this setting: one per two cores. An upgrade keeps the number that runs.',
  }),
  MUSTER_PROCESS: text('0/1', {
    doc: 'Which process of its role this one is, from 0, and how many there are: `1/3` is the second of three. `muster start` sets it.',
  }),
  MUSTER_METRICS_PORT: integer(9_480, {
    max: METRICS_PORT_MAX,
    doc: 'First of four ports with metrics and health: api, matchmaker, runner, edge. The next four are for the second process of each role, and so on. 0: off.',
  }),
  MUSTER_METRICS_HOST: text('127.0.0.1', { doc: 'Address that these ports listen on.' }),
  MUSTER_METRICS_TOKEN: text('', {
    is_secret: true,
    doc: 'Token that a request for metrics must carry (`Authorization: Bearer`). Required unless MUSTER_METRICS_HOST is a loopback address.',
  }),
  MUSTER_OTLP_URL: text('', {
    is_secret: true,
    doc: 'OpenTelemetry collector that rays are exported to, such as http://127.0.0.1:4318. Empty: no export.',
  }),
  MUSTER_OTLP_HEADERS: list('', {
    is_secret: true,
    doc: 'Extra HTTP headers for OTLP requests: `name=value`, comma-separated.',
  }),
  MUSTER_DRAIN_SECONDS: seconds(0, {
    max: DRAIN_SECONDS_MAX,
    doc: 'How long a process without a supervisor still serves after SIGTERM, while it reports that it is not ready. A load balancer needs this time to notice.',
  }),
  MUSTER_EDGE_RETIRE_SECONDS: seconds(3_600, {
    max: RETIRE_SECONDS_MAX,
    doc: 'How long an edge that was replaced keeps the connections that cannot move to the next one, such as those over TLS. After that they are closed.',
  }),
  MUSTER_EDGE_HOST: text('', {
    default_doc: '127.0.0.1 and ::1 in development, else all',
    doc: 'Address that HTTP and HTTPS listen on; `all`: every address of the machine. In development every client that reaches it is trusted.',
  }),
  MUSTER_EDGE_HTTP_PORT: port(80, { default_doc: '80, else 8000', doc: 'Public HTTP port.' }),
  MUSTER_EDGE_HTTPS_PORT: port(443, { default_doc: '443, else 8443', doc: 'Public HTTPS port.' }),
  MUSTER_ADVERTISED_HTTP_PORT: port(null, {
    default_doc: 'MUSTER_EDGE_HTTP_PORT',
    doc: 'HTTP port in the URLs that clients receive.',
  }),
  MUSTER_ADVERTISED_HTTPS_PORT: port(null, {
    default_doc: 'MUSTER_EDGE_HTTPS_PORT',
    doc: 'HTTPS port in the URLs that clients receive.',
  }),
  MUSTER_PUBLIC_SCHEME: choice(['http', 'https'], null, {
    default_doc: 'https in production, else http',
    doc: 'Scheme of the URLs that clients receive: http or https.',
  }),
  MUSTER_TLS_CERTIFICATES: text('', { doc: 'Folder of certificates and their keys (docs/https.md). Empty: none.' }),
  MUSTER_EDGE_PORTS: portRanges('26000-31999', {
    doc: 'TCP and UDP ports of the edge through which players reach lobbies.',
  }),
  MUSTER_EDGE_PORTS_HOST: text('', {
    default_doc: '127.0.0.2 in development, or the public host where that is an address; else all addresses',
    doc: "Address that these ports listen on. In development it must be the public host, or a loopback address other than the hub's.",
  }),
  MUSTER_EDGE_PORTS_SPARE: integer(32, {
    max: SPARE_PORTS_MAX,
    doc: 'Number of these ports kept open in advance for the next lobbies; at least 16.',
  }),
  MUSTER_EDGE_PUBLIC_HOST: text('', {
    default_doc: 'none',
    doc: 'Host name or IPv4 address at which players reach the edge of this node: the addresses of lobbies on the node name it.',
  }),
  MUSTER_EDGE_PING_PORT: port(0, {
    doc: 'UDP port where the edge echoes datagrams, for native clients that measure regions (docs/regions.md). 0: none.',
  }),
  MUSTER_HOST_PORT_RANGES: portRanges('', {
    doc: 'Port ranges for lobbies in network mode host, such as 27000-27999, comma-separated. The edge does not use these ports.',
  }),
  MUSTER_PROXY_PROTOCOL_FROM: list('', {
    doc: 'CIDR blocks of load balancers that send a PROXY protocol v2 header first on each TCP connection to the raw ports.',
  }),
  MUSTER_ACME: text('', {
    doc: 'Directory URL of an ACME authority to order certificates from. Setting it accepts its terms. Empty: no orders.',
  }),
  MUSTER_ACME_EMAIL: text('', { doc: 'Contact address for the authority.' }),
  MUSTER_ACME_ORDERS_MAX: integer(200, { max: ORDERS_MAX, doc: 'Certificates ordered within three hours, at most.' }),
  MUSTER_ACME_DOMAIN_ORDERS_MAX: integer(45, {
    max: ORDERS_MAX,
    doc: 'Certificates ordered within a week for one registrable domain, at most. Renewals do not count.',
  }),
  MUSTER_ACME_DNS_SERVER: nameServers('', {
    doc: 'Name server that accepts RFC 2136 updates, as `address` or `address:port`. With it, wildcard certificates are ordered by DNS-01.',
  }),
  MUSTER_ACME_DNS_KEY: text('', {
    doc: 'File with the TSIG key that signs these updates, as `tsig-keygen` or `keymgr -t` writes it.',
  }),
  MUSTER_ACME_DNS_HOOK: text('', {
    doc: 'Program to run in place of such updates: `HOOK present NAME VALUE` and `HOOK cleanup NAME VALUE` (docs/https.md).',
  }),
  MUSTER_ACME_DNS_FOR: list('', {
    default_doc: 'job',
    doc: 'Domains with wildcard certificates by DNS-01: job, cdn, or both, comma-separated.',
  }),
  MUSTER_ACME_DNS_CHECK: nameServers('', {
    default_doc: "those of the record's zone",
    doc: 'Name servers that must serve the TXT record before the authority checks it.',
  }),
  MUSTER_CONFIG: text('./muster.toml', { doc: 'File of regions and tiers. The default one may be missing.' }),
  MUSTER_CAPACITY_CORES: integer(null, {
    max: CORES_MAX,
    default_doc: "this machine's; none in development, and where muster.toml has `cores` for its regions",
    doc: 'Cores for all lobbies of this node together. 0: no limit.',
  }),
  MUSTER_CAPACITY_MEMORY_MB: integer(null, {
    max: MEMORY_MIB_MAX,
    default_doc: "90 % of this machine's; none in development, and where muster.toml has `memory_mb` for its regions",
    doc: 'Memory for all lobbies of this node together, in MiB. 0: no limit.',
  }),
  MUSTER_PLACEMENT: choice(PLACEMENTS, 'spread', {
    doc: 'Node of a new lobby, for regions without `placement`. `spread`: the node with most room; `pack`: the fullest with room.',
  }),
  MUSTER_DNS_SERVERS: nameServers('', {
    default_doc: "the system's",
    doc: 'Name servers that resolve the hosts of outgoing requests, comma-separated.',
  }),
  MUSTER_FETCH_PRIVATE_NETWORKS: list('', {
    doc: 'CIDR blocks of private or own addresses that outgoing requests may reach. All other addresses that are not public are blocked.',
  }),
  MUSTER_FETCH_LOCALHOST: choice(['on', 'off'], 'off', {
    doc: 'on: the verification endpoint of a game may be at http://localhost:PORT on this machine. Must be off in production.',
  }),
  MUSTER_FETCH_AUTHORITIES: text('', {
    doc: 'PEM file of certificate authorities that outgoing requests trust in addition to the well-known ones.',
  }),
  MUSTER_HCAPTCHA_URL: url('https://api.hcaptcha.com/siteverify', { doc: 'URL that verifies hCaptcha responses.' }),
  MUSTER_TURNSTILE_URL: url('https://challenges.cloudflare.com/turnstile/v0/siteverify', {
    doc: 'URL that verifies Turnstile responses.',
  }),
  MUSTER_LOGIN_TURNSTILE_SITE_KEY: text('', {
    doc: 'Site key of a Turnstile widget. With the secret key, every login by e-mail requires a captcha.',
  }),
  MUSTER_LOGIN_TURNSTILE_SECRET_KEY: text('', {
    is_secret: true,
    doc: 'Secret key of that widget. Set both keys, or neither.',
  }),
  MUSTER_RAYS_PER_SECOND: integer(5, {
    max: RAYS_MAX,
    doc: 'Ordinary rays kept per second and role. Rays that failed, were slow or started a lobby are kept in addition. 0: no rays.',
  }),
  MUSTER_RATE_LIMIT_SEATS: rate(120, { doc: 'Calls of find, join and create per minute and client. 0: no limit.' }),
  MUSTER_RATE_LIMIT_MATCHMAKER: rate(600, { doc: 'Other matchmaker calls per minute and client. 0: no limit.' }),
  MUSTER_RATE_LIMIT_CLOUD: rate(1_200, { doc: 'Cloud calls per minute and token. 0: no limit.' }),
  MUSTER_RATE_LIMIT_KV: rate(6_000, {
    doc: 'Reads and writes of KV entries per minute, per lobby or client. 0: no limit.',
  }),
  MUSTER_RATE_LIMIT_LOGIN: rate(20, { doc: 'Login codes per quarter of an hour and client. 0: no limit.' }),
  MUSTER_RATE_LIMIT_GUESTS: rate(2, { doc: 'New guests per minute and client, after the first 512. 0: no limit.' }),
  MUSTER_QUOTA_GAMES: quota(100, { doc: 'Games per group. 0: no limit.' }),
  MUSTER_QUOTA_NAMESPACES: quota(1_000, { doc: 'Namespaces per group, over all its games. 0: no limit.' }),
  MUSTER_QUOTA_BUILDS: quota(1_000, { doc: 'Builds per group, over all its games. 0: no limit.' }),
  MUSTER_QUOTA_SITES: quota(1_000, { doc: 'Sites per group, over all its games. 0: no limit.' }),
  MUSTER_QUOTA_STORAGE_MB: megabytes(100_000, { doc: 'Stored bytes per group, in units of 10^6 bytes. 0: no limit.' }),
  MUSTER_QUOTA_DOMAINS: quota(100, { doc: 'Custom domains per group, over all its games. 0: no limit.' }),
  MUSTER_QUOTA_MEMBERS: integer(MEMBERS_MAX, {
    max: MEMBERS_MAX,
    doc: `Members per group, at most ${MEMBERS_MAX}. 0: ${MEMBERS_MAX}.`,
  }),
  MUSTER_QUOTA_GUESTS: integer(1_000_000, {
    max: GUESTS_MAX,
    doc: 'Guests per namespace, counted once a minute. 0: no limit.',
  }),
  MUSTER_DOMAIN_QUARANTINE_DAYS: days(30, {
    doc: 'How long a custom domain stays reserved for its group after the group has given it up. 0: not at all.',
  }),
  MUSTER_KV_ENTRIES_MAX: integer(1_000_000, { max: KV_ENTRIES_MAX, doc: 'KV entries per namespace, at most.' }),
  MUSTER_KV_MB_MAX: megabytes(1_000, { doc: 'KV keys and values per namespace, at most, in units of 10^6 bytes.' }),
  MUSTER_UPLOAD_RATE_MIN: integer(1_024, {
    max: UPLOAD_RATE_MAX,
    doc: 'Slowest upload that is not cut off, in bytes per second. 0: no minimum.',
  }),
  MUSTER_UPLOAD_CONCURRENCY_MAX: integer(128, {
    max: UPLOAD_CONCURRENCY_MAX,
    doc: 'Files that one group may upload at the same time.',
  }),
  MUSTER_UPLOAD_DISK_FREE_MB_MIN: megabytes(2_000, {
    doc: 'Free disk space below which uploads are refused, in units of 10^6 bytes.',
  }),
  MUSTER_OBJECTS: text('', {
    default_doc: '`objects/` of the data folder',
    doc: 'Where uploaded files are stored: `s3://BUCKET/PREFIX` for a bucket of an S3 service.',
  }),
  MUSTER_S3_ENDPOINT: text('', {
    default_doc: 'AWS in the region',
    doc: 'Address of the S3 service, such as https://s3.example.com.',
  }),
  MUSTER_S3_REGION: text('us-east-1', { doc: 'Region of the S3 service, as its signatures name it.' }),
  MUSTER_S3_ACCESS_KEY_ID: text('', { default_doc: '`AWS_ACCESS_KEY_ID`', doc: 'Access key of the S3 service.' }),
  MUSTER_S3_SECRET_ACCESS_KEY: text('', {
    is_secret: true,
    default_doc: '`AWS_SECRET_ACCESS_KEY`',
    doc: 'Its secret.',
  }),
  AWS_ACCESS_KEY_ID: text('', { doc: 'Used when MUSTER_S3_ACCESS_KEY_ID is not set.' }),
  AWS_SECRET_ACCESS_KEY: text('', { is_secret: true, doc: 'Used when MUSTER_S3_SECRET_ACCESS_KEY is not set.' }),
  MUSTER_S3_UPLOAD_ENDPOINT: text('', {
    doc: 'Address at which developers reach the S3 service. If it is set, uploads go straight to the bucket. Empty: uploads go through the api.',
  }),
  MUSTER_BACKUP_TO: text('', {
    default_doc: 'no backups by a schedule',
    doc: 'Where the platform writes backups by a schedule: an absolute path, or `s3://BUCKET/PREFIX` of the S3 service.',
  }),
  MUSTER_BACKUP_KEY: text('', {
    is_secret: true,
    doc: 'Key that encrypts backups in a repository, of `muster keys backup` or `age-keygen`. Keep a copy in another place: without it no backup can be read.',
  }),
  MUSTER_BACKUP_SCHEDULE: text('0 4 * * *', {
    doc: 'When backups are made: five fields of cron, in UTC.',
  }),
  MUSTER_BACKUP_KEEP: text('7d 4w 12m', {
    doc: 'Which backups stay: the newest of each of the last days (d), weeks (w) and months (m) that have one.',
  }),
  MUSTER_SITE_CACHE_MB: megabytes(10_000, {
    doc: 'Files of sites that an edge keeps on its disk when stored files are in a bucket, in units of 10^6 bytes.',
  }),
  MUSTER_CHECK_STORED_DAYS: days(7, {
    doc: 'Period in which every stored file is compared with its hash once. 0: never.',
  }),
  MUSTER_LOBBY_DISK_FREE_MB_MIN: megabytes(1_000, {
    doc: "Free space on a runner's disk below which no lobby starts there, in units of 10^6 bytes. 0: no minimum.",
  }),
  MUSTER_LOGS_MB_MAX: megabytes(2_000, {
    doc: "Logs of ended lobbies on a runner's disk, in units of 10^6 bytes. The oldest are removed first. 0: no limit.",
  }),
  MUSTER_RETENTION_OBJECTS_HOURS: hours(1, { doc: 'How long the files of something deleted are kept. 0: not at all.' }),
  MUSTER_RETENTION_JOURNAL_HOURS: hours(72, {
    doc: 'How long journal rows are kept once every reader has consumed them. 0 keeps them forever; the same holds for all settings named MUSTER_RETENTION below.',
  }),
  MUSTER_RETENTION_UPLOADS_HOURS: hours(24, { doc: 'How long uploads that were never completed are kept.' }),
  MUSTER_RETENTION_AUDIT_DAYS: days(365, {
    doc: 'Events of the audit log. They outlive the group and the game that they are about.',
  }),
  MUSTER_RETENTION_PLAYERS_DAYS: days(30, { doc: 'Players, after they left.' }),
  MUSTER_RETENTION_LOBBIES_DAYS: days(30, { doc: 'Lobbies, after they stopped.' }),
  MUSTER_RETENTION_IDENTITIES_DAYS: days(400, {
    doc: 'Guests, after their last request. Never less than 182 days, because a token of theirs may still be valid.',
  }),
  MUSTER_RETENTION_RUNS_DAYS: days(400, { doc: 'Runs, after they ended. Usage and bills are computed from them.' }),
  MUSTER_RETENTION_EVENTS_DAYS: days(30, { doc: 'Analytics events, and roll-ups finer than an hour.' }),
  MUSTER_RETENTION_ANALYTICS_DAYS: days(1_000, { doc: 'Analytics roll-ups of hours and days.' }),
  MUSTER_RETENTION_RAYS_DAYS: days(7, { doc: 'Rays and explanations of seats.' }),
  MUSTER_RETENTION_RESULTS_DAYS: days(7, {
    doc: 'Results of matches, after they were reported. A result that is reported again later is rated again.',
  }),
  MUSTER_RETENTION_NOTICES_DAYS: days(14, { doc: 'Notices, after they were delivered or refused.' }),
  MUSTER_RETENTION_TOKENS_DAYS: days(30, { doc: 'Tokens, after they expired.' }),
  MUSTER_RETENTION_SESSIONS_DAYS: days(30, { doc: 'Sessions, after they ended.' }),
  MUSTER_RETENTION_LOGIN_CODES_HOURS: hours(24, { doc: 'Login codes, after they were sent.' }),
  MUSTER_RETENTION_DEVICE_LINKS_HOURS: hours(2, { doc: 'Device links, after they were completed.' }),
  MUSTER_RETENTION_INVITES_DAYS: days(30, { doc: 'Invites, after they expired.' }),
  MUSTER_RETENTION_JOBS_DAYS: days(30, { doc: 'Jobs, after their last failure.' }),
  MUSTER_RETENTION_BUILDS_DAYS: days(7, { doc: 'Unpacked builds on a runner, after the last lobby that used them.' }),
  MUSTER_RETENTION_LOGS_DAYS: days(7, { doc: 'Logs and folders of lobbies, after they ended.' }),
  MUSTER_ACCESS: choice(['public', 'private'], 'private', {
    doc: 'Who may create groups. public: every user; private: administrators only.',
  }),
  MUSTER_LOGIN_EMAIL: choice(['on', 'off'], 'on', {
    doc: 'Whether people may log in with a code by e-mail. off: only with a provider of sign-ins, a passkey, a sign-in link, or an access token.',
  }),
  MUSTER_SMTP_URL: text('', {
    is_secret: true,
    doc: 'Mail server for login codes: smtp:// or smtps://. Without it, development writes codes to the log, and production has no login by e-mail.',
  }),
  MUSTER_MAIL_FROM: text('', { default_doc: 'no-reply at the main domain', doc: 'Sender address of mail.' }),
  MUSTER_IP_DATA: text('', {
    default_doc: 'ip-data in MUSTER_DATA',
    doc: 'Folder of lists and mmdb files that classify addresses.',
  }),
  MUSTER_IP_FEEDS: list('', {
    doc: `Published lists of addresses: CLASS=URL, comma-separated. Classes: ${FEED_CLASSES.join(', ')}.`,
  }),
  MUSTER_IP_FEED_HOURS: hours(6, {
    max: FEED_HOURS_MAX,
    doc: 'Pause between two downloads of a published list; at least one hour.',
  }),
  MUSTER_IP_SEED: choice(['on', 'off'], 'on', {
    doc: 'Whether the list of hosting providers that comes with the platform is used: on or off.',
  }),
  MUSTER_TRUSTED_PROXIES: list('', {
    doc: 'CIDR blocks of proxies on other machines. X-Forwarded-For and X-Forwarded-Proto of their requests are trusted. Loopback addresses are refused.',
  }),
  MUSTER_EDGE_SOCKET: text('', {
    doc: 'Path of a unix socket where the edge also listens, for a proxy on this machine. X-Forwarded-For and X-Forwarded-Proto are trusted there (docs/deploying.md).',
  }),
  MUSTER_LOBBY_NETWORK: text('198.18.0.0/15', {
    doc: 'Private IPv4 range of which each lobby gets an address in a network of its own; at most /21. `machine`: lobbies share the network of this machine, for trusted builds only.',
  }),
  MUSTER_DRIVER: choice(['process', 'docker', 'swarm'], 'process', {
    doc: 'What runs lobbies. process: processes of this machine; docker: containers of an engine on this machine; swarm: tasks of a Docker Swarm (docs/containers.md).',
  }),
  MUSTER_DOCKER_SOCKET: text('/var/run/docker.sock', {
    doc: 'Unix socket of the container engine, for MUSTER_DRIVER=docker.',
  }),
  MUSTER_DOCKER_BASE_IMAGE: text('', {
    doc: 'Image that builds of kind `archive` run in, by a name or id that the engine has. Its programs are those that `args` can name. Empty: such builds do not run with MUSTER_DRIVER=docker.',
  }),
  MUSTER_SWARM_ENGINES: list('', {
    doc: 'Engines of the Swarm, for MUSTER_DRIVER=swarm: `NODE=unix:///PATH` or `NODE=tcp://HOST:PORT`, comma-separated. NODE is the name of the node in the platform. Name at least one manager.',
  }),
  MUSTER_SWARM_REGISTRY: text('', {
    doc: 'Address and port where the runner serves images to the engines of the Swarm: an IPv4 address of this machine that all of them reach, for example `10.0.0.1:5000`.',
  }),
  MUSTER_SWARM_TLS: text('', {
    doc: 'Folder with `ca.pem`, `cert.pem` and `key.pem` for engines at `tcp://`, as of docker. With `registry.pem` and `registry-key.pem` images are served over TLS. Required in production for `tcp://`.',
  }),
  MUSTER_REGISTRIES: list('', {
    doc: 'Registries whose container images version configs may name, by digest: `registry.example.com` or `registry.example.com/team`. `http://` in front: without TLS. Empty: none (docs/images.md).',
  }),
  MUSTER_REGISTRY_AUTH: text('', {
    doc: 'File with the credentials of registries, in the format of `docker login` (config.json). Empty: images are pulled without credentials.',
  }),
  MUSTER_SANDBOX: choice(['required', 'available', 'off'], null, {
    default_doc: 'required in production, else available',
    doc: 'Whether lobbies run under bubblewrap (or in containers), in networks of their own. required: always; available: where this machine can do it; off: never.',
  }),
  MUSTER_LOG_LEVEL: choice(['debug', 'info', 'warn', 'error', 'silent'], 'info', {
    doc: 'Lowest level that is logged: debug, info, warn, error or silent.',
  }),
} satisfies Readonly<Record<string, Setting>>

export type SettingName = keyof typeof SETTINGS
export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[]
