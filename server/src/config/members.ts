// Members of the Config that are the value of one setting each. Their types and their reading follow from the table of
// settings, which also says what each one means.
import type { DefaultedName, SettingsReader } from './read.ts'
import type { SETTINGS, Setting } from './settings.ts'

/** `?`: an empty text, or 0, is read as null. */
const MEMBERS = {
  domains: { main: 'MUSTER_DOMAIN_MAIN', cdn: 'MUSTER_DOMAIN_CDN', job: 'MUSTER_DOMAIN_JOB' },
  link: 'MUSTER_LINK?',
  internal_host: 'MUSTER_INTERNAL_HOST',
  api_port: 'MUSTER_API_PORT',
  matchmaker_port: 'MUSTER_MATCHMAKER_PORT',
  lobby_api_port: 'MUSTER_LOBBY_API_PORT',
  drain_ms: 'MUSTER_DRAIN_SECONDS',
  edge_retire_ms: 'MUSTER_EDGE_RETIRE_SECONDS',
  edge_http_port: 'MUSTER_EDGE_HTTP_PORT',
  edge_https_port: 'MUSTER_EDGE_HTTPS_PORT',
  proxy_protocol_from: 'MUSTER_PROXY_PROTOCOL_FROM',
  node_grace_ms: 'MUSTER_NODE_GRACE_SECONDS',
  dns_servers: 'MUSTER_DNS_SERVERS',
  captcha_urls: { hcaptcha: 'MUSTER_HCAPTCHA_URL', turnstile: 'MUSTER_TURNSTILE_URL' },
  rays_per_second: 'MUSTER_RAYS_PER_SECOND?',
  rate_limits: {
    seats_per_minute: 'MUSTER_RATE_LIMIT_SEATS',
    matchmaker_per_minute: 'MUSTER_RATE_LIMIT_MATCHMAKER',
    cloud_per_minute: 'MUSTER_RATE_LIMIT_CLOUD',
    kv_per_minute: 'MUSTER_RATE_LIMIT_KV',
    logins_per_quarter_hour: 'MUSTER_RATE_LIMIT_LOGIN',
    guests_per_minute: 'MUSTER_RATE_LIMIT_GUESTS',
  },
  access: 'MUSTER_ACCESS',
  email_login: 'MUSTER_LOGIN_EMAIL',
  quotas: {
    games: 'MUSTER_QUOTA_GAMES?',
    namespaces: 'MUSTER_QUOTA_NAMESPACES?',
    builds: 'MUSTER_QUOTA_BUILDS?',
    sites: 'MUSTER_QUOTA_SITES?',
    bytes: 'MUSTER_QUOTA_STORAGE_MB?',
    domains: 'MUSTER_QUOTA_DOMAINS?',
  },
  domain_quarantine_ms: 'MUSTER_DOMAIN_QUARANTINE_DAYS',
  guests_max: 'MUSTER_QUOTA_GUESTS?',
  kv: { entries_max: 'MUSTER_KV_ENTRIES_MAX', bytes_max: 'MUSTER_KV_MB_MAX' },
  uploads: {
    bytes_per_second_min: 'MUSTER_UPLOAD_RATE_MIN',
    group_concurrency_max: 'MUSTER_UPLOAD_CONCURRENCY_MAX',
    disk_free_bytes_min: 'MUSTER_UPLOAD_DISK_FREE_MB_MIN',
  },
  site_cache_bytes_max: 'MUSTER_SITE_CACHE_MB',
  check_ms: 'MUSTER_CHECK_STORED_DAYS?',
  lobbies: {
    disk_free_bytes_min: 'MUSTER_LOBBY_DISK_FREE_MB_MIN',
    ended_logs_bytes_max: 'MUSTER_LOGS_MB_MAX?',
  },
  retention: {
    abandoned_uploads_ms: 'MUSTER_RETENTION_UPLOADS_HOURS?',
    removed_objects_ms: 'MUSTER_RETENTION_OBJECTS_HOURS',
    journal_ms: 'MUSTER_RETENTION_JOURNAL_HOURS?',
    audit_ms: 'MUSTER_RETENTION_AUDIT_DAYS?',
    players_ms: 'MUSTER_RETENTION_PLAYERS_DAYS?',
    identities_ms: 'MUSTER_RETENTION_IDENTITIES_DAYS?',
    lobbies_ms: 'MUSTER_RETENTION_LOBBIES_DAYS?',
    rays_ms: 'MUSTER_RETENTION_RAYS_DAYS?',
    runs_ms: 'MUSTER_RETENTION_RUNS_DAYS?',
    events_ms: 'MUSTER_RETENTION_EVENTS_DAYS?',
    analytics_ms: 'MUSTER_RETENTION_ANALYTICS_DAYS?',
    results_ms: 'MUSTER_RETENTION_RESULTS_DAYS?',
    notices_ms: 'MUSTER_RETENTION_NOTICES_DAYS?',
    tokens_ms: 'MUSTER_RETENTION_TOKENS_DAYS?',
    sessions_ms: 'MUSTER_RETENTION_SESSIONS_DAYS?',
    login_codes_ms: 'MUSTER_RETENTION_LOGIN_CODES_HOURS?',
    device_links_ms: 'MUSTER_RETENTION_DEVICE_LINKS_HOURS?',
    invites_ms: 'MUSTER_RETENTION_INVITES_DAYS?',
    jobs_ms: 'MUSTER_RETENTION_JOBS_DAYS?',
    builds_ms: 'MUSTER_RETENTION_BUILDS_DAYS?',
    logs_ms: 'MUSTER_RETENTION_LOGS_DAYS?',
  },
  driver: 'MUSTER_DRIVER',
  registry_auth_file: 'MUSTER_REGISTRY_AUTH?',
  log_level: 'MUSTER_LOG_LEVEL',
} as const satisfies MemberTree

type Member = DefaultedName | `${DefaultedName}?`
type MemberTree = { readonly [Key in string]: Member | MemberTree }

type ValueOf<Entry extends Setting> = Entry extends { of: readonly (infer Choice)[] }
  ? Choice
  : Entry extends { max: number }
    ? number
    : Entry extends { kind: 'list' | 'name_servers' }
      ? readonly string[]
      : string
type MemberValue<M> = M extends `${infer Name extends DefaultedName}?`
  ? ValueOf<(typeof SETTINGS)[Name]> | null
  : M extends DefaultedName
    ? ValueOf<(typeof SETTINGS)[M]>
    : MemberValues<M>
type MemberValues<Tree> = { -readonly [Key in keyof Tree]: MemberValue<Tree[Key]> }

export type SettingMembers = MemberValues<typeof MEMBERS>

export function readMembers(read: SettingsReader): SettingMembers {
  return readTree(read, MEMBERS) as SettingMembers
}

function readTree(read: SettingsReader, tree: MemberTree): object {
  const members = Object.entries(tree).map(([key, member]) => {
    if (typeof member !== 'string') return [key, readTree(read, member)]
    const value = read.value(member.replace('?', '') as DefaultedName)
    return [key, member.endsWith('?') ? value || null : value]
  })
  return Object.fromEntries(members)
}
