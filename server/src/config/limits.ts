// Settings that bound what clients and groups may use, and how long things are kept.
import type { Config } from './config.ts'
import type { SettingsReader } from './read.ts'
import { MEMBERS_MAX } from './settings.ts'

export function readLimits(
  read: SettingsReader,
): Pick<Config, 'rate_limits' | 'quotas' | 'domain_quarantine_ms' | 'guests_max' | 'kv' | 'uploads' | 'lobbies'> {
  return {
    rate_limits: {
      seats_per_minute: read.number('MUSTER_RATE_LIMIT_SEATS'),
      matchmaker_per_minute: read.number('MUSTER_RATE_LIMIT_MATCHMAKER'),
      cloud_per_minute: read.number('MUSTER_RATE_LIMIT_CLOUD'),
      kv_per_minute: read.number('MUSTER_RATE_LIMIT_KV'),
      logins_per_quarter_hour: read.number('MUSTER_RATE_LIMIT_LOGIN'),
      guests_per_minute: read.number('MUSTER_RATE_LIMIT_GUESTS'),
    },
    quotas: {
      games: read.numberOrNull('MUSTER_QUOTA_GAMES'),
      namespaces: read.numberOrNull('MUSTER_QUOTA_NAMESPACES'),
      builds: read.numberOrNull('MUSTER_QUOTA_BUILDS'),
      sites: read.numberOrNull('MUSTER_QUOTA_SITES'),
      bytes: read.numberOrNull('MUSTER_QUOTA_STORAGE_MB'),
      domains: read.numberOrNull('MUSTER_QUOTA_DOMAINS'),
      members: read.numberOrNull('MUSTER_QUOTA_MEMBERS') ?? MEMBERS_MAX,
    },
    domain_quarantine_ms: read.number('MUSTER_DOMAIN_QUARANTINE_DAYS'),
    guests_max: read.numberOrNull('MUSTER_QUOTA_GUESTS'),
    kv: { entries_max: read.number('MUSTER_KV_ENTRIES_MAX'), bytes_max: read.number('MUSTER_KV_MB_MAX') },
    uploads: {
      bytes_per_second_min: read.number('MUSTER_UPLOAD_RATE_MIN'),
      group_concurrency_max: read.number('MUSTER_UPLOAD_CONCURRENCY_MAX'),
      disk_free_bytes_min: read.number('MUSTER_UPLOAD_DISK_FREE_MB_MIN'),
    },
    lobbies: {
      disk_free_bytes_min: read.number('MUSTER_LOBBY_DISK_FREE_MB_MIN'),
      ended_logs_bytes_max: read.numberOrNull('MUSTER_LOGS_MB_MAX'),
    },
  }
}

export function readRetention(read: SettingsReader): Config['retention'] {
  return {
    abandoned_uploads_ms: read.numberOrNull('MUSTER_RETENTION_UPLOADS_HOURS'),
    removed_objects_ms: read.number('MUSTER_RETENTION_OBJECTS_HOURS'),
    journal_ms: read.numberOrNull('MUSTER_RETENTION_JOURNAL_HOURS'),
    audit_ms: read.numberOrNull('MUSTER_RETENTION_AUDIT_DAYS'),
    players_ms: read.numberOrNull('MUSTER_RETENTION_PLAYERS_DAYS'),
    identities_ms: read.numberOrNull('MUSTER_RETENTION_IDENTITIES_DAYS'),
    lobbies_ms: read.numberOrNull('MUSTER_RETENTION_LOBBIES_DAYS'),
    rays_ms: read.numberOrNull('MUSTER_RETENTION_RAYS_DAYS'),
    runs_ms: read.numberOrNull('MUSTER_RETENTION_RUNS_DAYS'),
    events_ms: read.numberOrNull('MUSTER_RETENTION_EVENTS_DAYS'),
    analytics_ms: read.numberOrNull('MUSTER_RETENTION_ANALYTICS_DAYS'),
    tokens_ms: read.numberOrNull('MUSTER_RETENTION_TOKENS_DAYS'),
    sessions_ms: read.numberOrNull('MUSTER_RETENTION_SESSIONS_DAYS'),
    login_codes_ms: read.numberOrNull('MUSTER_RETENTION_LOGIN_CODES_HOURS'),
    device_links_ms: read.numberOrNull('MUSTER_RETENTION_DEVICE_LINKS_HOURS'),
    invites_ms: read.numberOrNull('MUSTER_RETENTION_INVITES_DAYS'),
    jobs_ms: read.numberOrNull('MUSTER_RETENTION_JOBS_DAYS'),
    builds_ms: read.numberOrNull('MUSTER_RETENTION_BUILDS_DAYS'),
    logs_ms: read.numberOrNull('MUSTER_RETENTION_LOGS_DAYS'),
  }
}
