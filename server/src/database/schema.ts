// The tables, as Kysely sees them. A column is named like the member of the record that carries it, so that a row
// read with select([...]) is already an answer. Which part of the platform is the one writer of each table stands
// above it; everybody else only reads.

import type {
  Admission,
  AuditChange,
  AuditOutcome,
  GroupRole,
  NoticeEvent,
  NoticeKind,
  PortProtocol,
  ReadyCheck,
  ScheduleKind,
  ScheduleOutcome,
  StatusIncident,
} from '@musterhost/contract'
import type { ColumnType, Generated } from 'kysely'
import type { StatusView } from '../wire/status-view.ts'

/** Read as a Date; written as one, or left to the column's default. */
type CreateTime = ColumnType<Date, Date | undefined, never>
/** bigint columns stay below 2^53 by policy and are read as numbers (see connect.ts). */
type JsonColumn<T> = ColumnType<T, string, string>

export type Schema = {
  groups: GroupTable
  users: UserTable
  user_sessions: UserSessionTable
  sign_in_links: SignInLinkTable
  sign_in_providers: SignInProviderTable
  provider_accounts: ProviderAccountTable
  passkeys: PasskeyTable
  spent_sign_ins: { state_hash: Buffer; expire_ts: Date }
  email_verifications: EmailVerificationTable
  group_members: GroupMemberTable
  group_invites: GroupInviteTable
  device_links: DeviceLinkTable
  games: GameTable
  namespaces: NamespaceTable
  namespace_auth_users: NamespaceAuthUserTable
  namespace_versions: NamespaceVersionTable
  rollouts: RolloutTable
  rollout_finds: RolloutFindsTable
  versions: VersionTable
  uploads: UploadTable
  upload_files: UploadFileTable
  builds: BuildTable
  sites: SiteTable
  game_images: GameImageTable
  tokens: TokenTable
  audit_events: AuditEventTable
  notice_targets: NoticeTargetTable
  notices: NoticeTable
  notice_states: NoticeStateTable
  notice_reader: NoticeReaderTable
  schedules: ScheduleTable
  schedule_runs: ScheduleRunTable
  revoked_tokens: RevokedTokenTable
  removed_objects: RemovedObjectTable
  damaged_objects: DamagedObjectTable
  analytics_lines: AnalyticsLineTable
  analytics_series: AnalyticsSeriesTable
  analytics_lobbies: AnalyticsLobbyTable
  analytics_players: AnalyticsPlayerTable
  analytics_events: AnalyticsEventTable
  analytics_roll_ups: AnalyticsRollUpTable
  analytics_exit_codes: AnalyticsExitCodeTable
  domains: DomainTable
  game_secrets: GameSecretTable
  status_pages: StatusPageTable
  status_incidents: StatusIncidentTable
  status_updates: StatusUpdateTable
  status_days: StatusDayTable
  released_domains: ReleasedDomainTable
  certificates: CertificateTable
  acme_accounts: AcmeAccountTable
  acme_challenges: AcmeChallengeTable
  acme_orders: AcmeOrderTable
  journal: JournalTable
  journal_readers: JournalReaderTable
  shards: ShardTable
  matchmakers: MatchmakerTable
  node_versions: NodeVersionTable
  additive_migrations: { name: string; wire_version: number }
  shard_leases: ShardLeaseTable
  port_claims: PortClaimTable
  shard_room: ShardRoomTable
  place_room: PlaceRoomTable
  lobbies: LobbyTable
  players: PlayerTable
  captcha_clients: CaptchaClientTable
  captcha_claims: CaptchaClaimTable
  draining_versions: DrainingVersionTable
  explanations: ExplanationTable
  ray_spans: RaySpanTable
  lobby_runs: LobbyRunTable
  edge_ports: EdgePortTable
  edges: EdgeTable
  edge_reports: EdgeReportTable
  lobby_connections: LobbyConnectionTable
  edge_players: EdgePlayerTable
  edge_admissions: EdgeAdmissionTable
  lobby_traffic: LobbyTrafficTable
  lobby_usage: LobbyUsageTable
  identities: IdentityTable
  runners: RunnerTable
  nodes: NodeTable
  node_invitations: NodeInvitationTable
  node_links: NodeLinkTable
  log_questions: LogQuestionTable
  log_answers: LogAnswerTable
  parties: PartyTable
  erasures: ErasureTable
  tickets: TicketTable
  kv_entries: KvEntryTable
  kv_usage: KvUsageTable
  ratings: RatingTable
  rating_results: RatingResultTable
  restores: RestoreTable
  /** One row, from the migration that made the table. */
  platform_ids: { platform_id: string }
  backups: BackupTable
  verifications: VerificationTable
  job_runs: JobRunTable
}

// Written by the commands `muster backup` and `muster verify`. The newest are kept.

type BackupTable = {
  backup_id: string
  folder: string
  create_ts: Date
  end_ts: Date
  row_count: number
  object_count: number
  object_bytes: number
  lacking_count: number
}

/** `folder`: of a backup; null: the platform itself. */
type VerificationTable = {
  verification_id: string
  folder: string | null
  end_ts: Date
  is_sound: boolean
  finding_count: number
}

// Written by every role.

/** The last run of a job of a role (database/job-runs.ts). Not logged. */
type JobRunTable = {
  role: string
  job: string
  end_ts: Date
  duration_ms: number
  failure: string | null
  success_ts: Date | null
}

// Written by api.

/**
 * What the operator decided about a node: a machine's data folder with the roles that it runs. A node without a row is
 * known from what its roles report. `drain_ts`: since when it gets no new lobbies.
 */
type NodeTable = {
  node_id: string
  region: string | null
  roles: Generated<string[]>
  create_ts: CreateTime
  drain_ts: Date | null
  drain_at_match_end: Generated<boolean>
  drain_deadline_ts: Date | null
  removed_ts: Date | null
}

/** The program of a node, as its supervisor started it. */
type NodeVersionTable = { node_id: string; version: string; wire_version: number; start_ts: Date }

/** `secret_hash`: of the only proof. `use_ip`: of the machine that joined with it. */
type NodeInvitationTable = {
  invitation_id: string
  secret_hash: string
  node_id: string
  region: string
  roles: string[]
  create_ts: CreateTime
  expire_ts: Date
  use_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  use_ip: ColumnType<string | null, string | null | undefined, string | null>
  revoke_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
}

/**
 * The link of a joined node; written by the edge too. `key_hash`: of the node's public key. `revoke_ts`: when the node was
 * removed; its key is refused from then on. `database_role`: null once it was dropped. A run of such a node is not on the
 * platform's machine.
 */
type NodeLinkTable = {
  node_id: string
  key_hash: string
  database_role: string | null
  join_ts: ColumnType<Date, Date | undefined, Date>
  certificate_expire_ts: Date
  revoke_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  version: string
  seen_ts: Date | null
  round_trip_ms: number | null
  /** The clock of the node minus that of the platform. */
  clock_offset_ms: number | null
}

/** `value` is JSON text, as it is answered. `revision`: of all writes of the namespace, which one it came with. */
type KvEntryTable = {
  namespace_id: string
  key: string
  directory: string
  value: string
  revision: number
  update_ts: Date
}

/** What is asked of a runner on another machine about a lobby's log, for as long as somebody waits for the answer. */
type LogQuestionTable = {
  question_id: string
  lobby_id: string
  runner_id: string
  question: JsonColumn<unknown>
  ask_ts: Generated<Date>
}

/** What the entries of a namespace come to; `revision` counts its writes. */
type KvUsageTable = { namespace_id: string; entry_count: number; byte_count: number; revision: number }

/** Its ids refer to nothing: an event outlives its group, game and user. `token_id`: of a user, the session. */
type AuditEventTable = {
  event_id: string
  create_ts: Date
  group_id: string | null
  game_id: string | null
  namespace_id: string | null
  actor_kind: string
  user_id: string | null
  actor_name: string | null
  token_id: string | null
  client_ip: string
  ray_id: string
  operation: string
  outcome: AuditOutcome
  code: string | null
  changes: JsonColumn<AuditChange[]>
  dropped_count: number
}

/** Group and game null: of the platform. `secrets`: sealed JSON. `owner`: the process that sends to it, until `owner_until`. */
type NoticeTargetTable = {
  target_id: string
  group_id: string | null
  game_id: string | null
  name: string
  kind: NoticeKind
  hint: string | null
  secrets: string
  settings: JsonColumn<NoticeSettings>
  create_ts: CreateTime
  paused_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  pause_reason: ColumnType<string | null, string | null | undefined, string | null>
  dropped_count: Generated<number>
  delivery_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  next_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  owner: ColumnType<string | null, string | null | undefined, string | null>
  owner_until: ColumnType<Date | null, Date | null | undefined, Date | null>
}

/** `by_admin`: the addresses were set by an administrator, and need not be those of members. */
export type NoticeSettings = {
  events: NoticeEvent[]
  game_ids?: string[]
  namespace_ids?: string[]
  chat_id?: string
  addresses?: string[]
  by_admin: boolean
}

/** `source`: what it is about, unique for a target. `number`: the order. `end_ts` null: it waits. */
type NoticeTable = {
  notice_id: string
  target_id: string
  number: Generated<number>
  source: string
  event: string
  notice: JsonColumn<Record<string, unknown>>
  create_ts: Date
  state: ColumnType<'waiting' | 'delivered' | 'failed', 'waiting' | 'delivered' | 'failed' | undefined, string>
  end_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  attempt_count: Generated<number>
  last_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  status: ColumnType<number | null, number | null | undefined, number | null>
  response: ColumnType<string | null, string | null | undefined, string | null>
}

/** What was already noticed. `value`: of the kind of state. */
type NoticeStateTable = { state_key: string; value: JsonColumn<Record<string, unknown>>; seen_ts: Date }

/** One row while there is a target: up to where the audit log was read. */
type NoticeReaderTable = { reader: number; audit_ts: Date; states_ts: Date | null; begin_ts: Date }

/** `handled_ts`: every occurrence until then has its run. */
type ScheduleTable = {
  schedule_id: string
  game_id: string
  namespace_id: string
  name: string
  kind: ScheduleKind
  cron: string
  time_zone: string
  settings: JsonColumn<ScheduleSettings>
  is_paused: boolean
  create_ts: Date
  handled_ts: Date
}

/** The members that depend on the kind. */
export type ScheduleSettings = {
  game_modes?: string[]
  regions?: string[]
  count?: number
  duration_s?: number
  deadline_s?: number
  text?: string
  announce_before?: { before_s: number; text: string }[]
}

/** `begin_book_ts`: its begin by the time of the books, as lobbies have it. `before_s`: how long before `due_ts` it announces the occurrence; 0: it is the occurrence. `end_ts` null: it waits, or is under way. */
type ScheduleRunTable = {
  run_id: string
  schedule_id: string
  due_ts: Date
  before_s: number
  is_requested: boolean
  outcome: ScheduleOutcome
  begin_ts: NullableTime
  begin_book_ts: NullableTime
  until_ts: NullableTime
  end_ts: NullableTime
  lobby_count: Generated<number>
  failed_count: Generated<number>
  missed_count: Generated<number>
  message: ColumnType<string | null, string | null | undefined, string | null>
}
type NullableTime = ColumnType<Date | null, Date | null | undefined, Date | null>

/**
 * `recent`: the last measured minutes of each part, newest last, as a letter each. `view`: what the edge shows (wire/status-view.ts);
 * `view_seq` grows with each change of it. `measured_ts`: end of the last minute that was measured.
 */
type StatusPageTable = {
  game_id: string
  namespace_id: string
  is_enabled: boolean
  title: string | null
  text: string | null
  domain: string | null
  measured_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  recent: JsonColumn<Record<string, string>>
  view: JsonColumn<StatusView>
  view_seq: Generated<number>
}

type StatusIncidentTable = {
  incident_id: string
  game_id: string
  title: string
  state: StatusIncident['state']
  impact: StatusIncident['impact']
  create_ts: Date
  update_ts: Date
  resolve_ts: Date | null
}

type StatusUpdateTable = {
  update_id: string
  incident_id: string
  state: StatusIncident['state']
  text: string
  create_ts: Date
}

/** Minutes of a day of UTC that were measured, and the bad ones of them. `region`: empty for finds. */
type StatusDayTable = { namespace_id: string; region: string; day: string; measured_count: number; bad_count: number }

type RatingTable = {
  namespace_id: string
  game_mode: string
  identity_id: string
  mu: number
  sigma: number
  matches: number
  update_ts: Date
}

/** `match_id`: empty where the lobby is one match. `body_hash`: of the teams and places. `response`: as it was sent. */
type RatingResultTable = {
  lobby_id: string
  match_id: string
  namespace_id: string
  body_hash: Buffer
  response: string
  create_ts: Date
}

type GroupTable = { group_id: string; display_name: string; create_ts: CreateTime }

/** A person: by e-mail address, or an administrator by the name of the access token. The API calls it an identity. */
type UserTable = {
  user_id: string
  /** In lower case. */
  email: string | null
  access_name: string | null
  display_name: string
  create_ts: CreateTime
}

/** `generation`: how often it was refreshed; the refresh token of that generation is the one that is good. */
type UserSessionTable = {
  session_id: string
  user_id: string
  generation: Generated<number>
  access_token_id: string | null
  create_ts: CreateTime
  refresh_ts: Date
  expire_ts: Date
  end_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  /** Client of the last use of the session; null in old sessions. */
  client_ip: ColumnType<string | null, string | null | undefined, string | null>
  user_agent: ColumnType<string | null, string | null | undefined, string | null>
  /** The provider that opened it, with its ids of the person and of its own session; null: another way to log in. */
  provider_id: Optional<string>
  provider_subject: Optional<string>
  provider_sid: Optional<string>
  /** Whether the provider named the person as an administrator. */
  is_admin: Generated<boolean>
  /** No refresh extends it beyond this time. */
  end_by_ts: Optional<Date>
  /** The passkey that opened it, also after its removal; null: another way to log in. */
  passkey_id: Optional<string>
  /** When the person last confirmed with a passkey, or signed in with one. */
  confirm_ts: Optional<Date>
}

/** `credential_id`, `public_key`: of the authenticator; the key in COSE. `sign_count`: its counter at the last use; 0: it has none. */
type PasskeyTable = {
  passkey_id: string
  user_id: string
  credential_id: Buffer
  public_key: Buffer
  sign_count: number
  transports: string[]
  name: string
  /** The access token behind the session that added it: when it is revoked, the passkey signs in no more. */
  access_token_id: string | null
  signs_in: boolean
  create_ts: Date
  use_ts: Optional<Date>
}

type Optional<T> = ColumnType<T | null, T | null | undefined, T | null>

/** What an administrator sets of a provider of sign-ins, beside its columns. */
export type SignInSettings = {
  scopes: readonly string[]
  groups_claim: string | null
  rules: readonly { value: string; group_id: string; role: Exclude<GroupRole, 'owner'> }[]
  admin_values: readonly string[]
  requires_value: boolean
  links_by_email: boolean
  session_hours: number
}

/** `client_secret`: sealed; null for a public client. */
type SignInProviderTable = {
  provider_id: string
  name: string
  title: string
  issuer: string
  client_id: string
  client_secret: string | null
  settings: JsonColumn<SignInSettings>
  create_ts: Date
}

/** An account of a person at an issuer. `email`: as the provider reported it at the last sign-in. */
type ProviderAccountTable = {
  issuer: string
  subject: string
  user_id: string
  email: string | null
  create_ts: Date
  sign_in_ts: Date
}

/** `access_token_id`: the token of the administrator who made the link; it ends with that token. */
type SignInLinkTable = {
  link_hash: Buffer
  access_name: string
  access_token_id: string | null
  create_ts: Date
  expire_ts: Date
  use_ts: Date | null
}

type EmailVerificationTable = {
  verification_id: string
  email: string
  /** The client key that asked for it, and the keys of its networks. */
  client: string
  networks: string[]
  code_hash: Buffer
  attempt_count: Generated<number>
  create_ts: CreateTime
  expire_ts: Date
  complete_ts: Date | null
}

/** At most one owner a group. */
/** `provider_id`: the provider of sign-ins that made the membership, and may take it away; null: a person did. */
type GroupMemberTable = {
  group_id: string
  user_id: string
  role: GroupRole
  join_ts: Date
  provider_id: ColumnType<string | null, string | null | undefined, string | null>
}

type GroupInviteTable = {
  code_hash: Buffer
  group_id: string
  role: GroupRole
  use_count: Generated<number>
  use_count_max: number
  create_ts: CreateTime
  expire_ts: Date
  revoke_ts: Date | null
}

/** Links that are complete. Until then a link is nothing but its token. */
type DeviceLinkTable = { device_link_id: string; game_id: string; complete_ts: Date }

type GameTable = {
  game_id: string
  developer_group_id: string
  name_id: string
  display_name: string
  create_ts: CreateTime
  /** The number of the last version name that was reserved. */
  version_number: Generated<number>
}

type NamespaceTable = {
  namespace_id: string
  game_id: string
  name_id: string
  display_name: string
  version_id: string
  create_ts: CreateTime
  lobby_count_max: Generated<number>
  max_players_per_client: Generated<number>
  max_players_per_client_vpn: Generated<number>
  max_players_per_client_proxy: Generated<number>
  max_players_per_client_tor: Generated<number>
  max_players_per_client_hosting: Generated<number>
  enable_domain_public_auth: Generated<boolean>
  cdn_auth_type: Generated<'none' | 'basic'>
  /** Null: it does not expire. */
  expire_ts: Date | null
}

/** Who may visit a site that asks for a password. The hash is bcrypt's, and leaves the database towards the edge only. */
type NamespaceAuthUserTable = { namespace_id: string; user: string; password_hash: string; create_ts: CreateTime }

/** Every deploy; `deploy_number` counts them in the order in which they came into force. */
type NamespaceVersionTable = {
  deploy_id: string
  deploy_number: Generated<number>
  namespace_id: string
  version_id: string
  deploy_ts: CreateTime
  caller_kind: string
  caller_name: string | null
  /** The person; null for tokens, and in old rows. */
  caller_user_id: string | null
  message: string | null
  is_rollback: Generated<boolean>
}

/** A version that a part of the clients gets. `end_ts` null: it is under way. Percents are whole. */
type RolloutTable = {
  rollout_id: string
  namespace_id: string
  version_id: string
  deployed_version_id: string
  percent: number
  failed_lobbies_percent_max: number | null
  refused_finds_percent_max: number | null
  begin_ts: Date
  end_ts: Date | null
  outcome: 'promoted' | 'rolled_back' | 'replaced' | null
  reason: string | null
}

/** Finds for a version since the roll-out began, and those that were refused. */
type RolloutFindsTable = { rollout_id: string; version_id: string; find_count: number; refused_count: number }

/**
 * `config` is the version config, checked by the contract (contract/src/version-config.ts), without its secrets: they are
 * sealed in `secrets` (tokens/version-secrets.ts).
 */
type VersionTable = {
  version_id: string
  game_id: string
  display_name: string
  config: JsonColumn<unknown>
  secrets: ColumnType<string | null, string | null | undefined, string>
  create_ts: CreateTime
}

type UploadTable = {
  upload_id: string
  game_id: string
  kind: 'build' | 'site' | GameImageKind
  content_length: number
  create_ts: CreateTime
  complete_ts: Date | null
}

/**
 * One row a presigned PUT: a file, or one part of it; completing the upload makes one file and one row of the parts.
 * `object_key` names the bytes in the object store.
 */
type UploadFileTable = {
  upload_id: string
  path: string
  byte_offset: number
  content_length: number
  content_type: string | null
  object_key: string
  /** Hex SHA-256 of the stored bytes; null until the upload is completed. */
  sha256: string | null
  /** Hex SHA-256 of the whole file, as its sender announced it; null: it did not. */
  expected_sha256: ColumnType<string | null, string | null | undefined, never>
  /** The SHA-256 of each block (objects/digest.ts), one after the other. Null of files that are never read in parts. */
  block_hashes: ColumnType<Buffer | null, Buffer | null | undefined, Buffer | null>
  /** When all of the stored bytes were last compared with `sha256`; null: not yet. */
  checked_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  /** The platform made it from the file whose path has no .br or .gz at its end (cloud/uploads/pack-texts.ts). */
  is_packed: ColumnType<boolean, boolean | undefined, never>
  /** How the first bytes of a file of a site say that it is compressed, where its name does not; null: not at all. */
  content_encoding: ColumnType<'br' | 'gzip' | null, null | undefined, 'br' | 'gzip'>
}

/**
 * Objects of completed uploads whose bytes are not those that were uploaded. The role that reads such an object inserts
 * the row; the api's scrub confirms it, sets the object aside, and removes the row once the bytes are right again.
 */
type DamagedObjectTable = {
  object_key: string
  /** A DamageReason of objects/damage.ts. */
  reason: string
  /** The role that read it. */
  found_by: string
  found_ts: Date
  /** Null: found by one read, and not confirmed by a second one yet. */
  quarantine_ts: Date | null
}

/** How the server of a container image starts: the checked config of the image, with its user as numbers. */
type StoredImageStart = {
  entrypoint: string[]
  cmd: string[]
  env: Record<string, string>
  working_folder: string
  stop_signal: NodeJS.Signals
  uid: number
  gid: number
}

type BuildTable = {
  build_id: string
  game_id: string
  upload_id: string
  display_name: string
  image_tag: string
  kind: 'archive' | 'docker_image' | 'oci_bundle'
  compression: 'none' | 'gzip' | 'lz4' | 'zstd'
  tags: JsonColumn<Record<string, string>>
  /** The files of its archive (cloud/uploads/file-list.ts); null where nobody noted them. */
  file_list: ColumnType<string | null, string | null | undefined, string | null>
  /** How a container image starts; null for an archive, and for an image that was not checked. */
  image: ColumnType<StoredImageStart | null, string | undefined, string | null>
  create_ts: CreateTime
}

/**
 * Objects that no row names any more. They are deleted when they are due, and their rows after them. `upload_id`: it was
 * a part of this upload, which has been completed.
 */
type RemovedObjectTable = { object_key: string; due_ts: Date; upload_id: string | null }

type SiteTable = { site_id: string; game_id: string; upload_id: string; display_name: string; create_ts: CreateTime }

export type GameImageKind = 'logo' | 'banner'

/** At most one of a kind and game; the upload is complete. */
type GameImageTable = {
  game_id: string
  kind: GameImageKind
  upload_id: string
  /** Hex, of the stored bytes: the address under which the picture is served. */
  sha256: string
  content_type: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'
  /** Pixels. */
  width: number
  height: number
}

/** What was given out, to be listed and revoked by its id; the token itself is nowhere. */
type TokenTable = {
  token_id: string
  kind: 'cloud' | 'public' | 'development'
  game_id: string
  /** Null: of the game as a whole. */
  namespace_id: string | null
  create_ts: CreateTime
  expire_ts: Date | null
  /** The host that a development token names, in lower case; null for all other kinds. */
  hostname: string | null
  name: string | null
  /** Null: created before this was recorded. */
  creator_kind: string | null
  /** Name of the access token of an administrator. */
  creator_name: string | null
  creator_user_id: string | null
  /** The last use of a cloud token, a few seconds late. Null for other kinds. */
  use_ts: Date | null
}

/** Tokens of any kind that are not valid any more; `revoke_ts` is the database's own clock (database/revoked.ts). */
type RevokedTokenTable = { token_id: string; revoke_ts: CreateTime; expire_ts: Date | null }

/**
 * One row a claim of a namespace to a custom domain. Two may claim the same; at most one claim of a domain is active
 * (the index domains_active). Deleted with its namespace.
 */
type DomainTable = {
  domain_id: string
  namespace_id: string
  /** Lower case, ASCII (xn--). */
  domain: string
  create_ts: CreateTime
  verification_status: 'active' | 'pending' | 'failed'
  /** The value of the TXT record that proves this claim. */
  txt_value: string
  /** The label below the CDN's domain that is the target of the CNAME record that proves this claim. */
  cname_label: string
  /** The kind of the last proof that was found. `http`: it became active when an HTTP fetch was a proof. */
  proof: 'cname' | 'txt' | 'http' | null
  verification_errors: JsonColumn<string[]>
  /** Checks in a row that failed. */
  failure_count: Generated<number>
  /** The last check that succeeded. */
  verify_ts: Date | null
}

/** `namespace_id`: null: all namespaces of the game. `value`: sealed. `byte_count`: of the value as it was sent. */
type GameSecretTable = {
  secret_id: string
  game_id: string
  namespace_id: string | null
  name: string
  value: string
  byte_count: number
  update_ts: Date
  /** Who set the value; null where it was set before this was recorded. The name is that of an access token. */
  creator_kind: string | null
  creator_name: string | null
  creator_user_id: string | null
}

/** A domain that was active and that its owner gave up: in quarantine for every other group. */
type ReleasedDomainTable = { domain: string; group_id: string; release_ts: Date }

/** What is there in a line now; of each fact and roll-up, by how much it changed that. */
type AnalyticsGauge =
  | 'lobby_count'
  | 'lobby_closed_count'
  | 'lobby_unready_count'
  | 'lobby_preemptive_count'
  | 'player_count'
  | 'player_unready_count'
type AnalyticsChanges = Record<`${AnalyticsGauge}_change`, number>

/** A line of analytics: a namespace, one of its regions, or one of its game modes. Gauges hold at the aggregation's position. */
type AnalyticsLineTable = Record<AnalyticsGauge, Generated<number>> & {
  line_id: Generated<number>
  namespace_id: string
  region: string | null
  game_mode: string | null
}
/** The lobbies and players of a namespace in one region and one game mode; the first of its lines is the namespace's. */
type AnalyticsSeriesTable = {
  series_id: Generated<number>
  namespace_id: string
  region: string
  game_mode: string
  line_ids: number[]
}

/** Lobbies until they are stopped and their process has ended, and their players (analytics/live-state.ts). */
type AnalyticsLobbyTable = {
  lobby_id: string
  series_id: number
  is_custom: boolean
  is_ready: boolean
  is_closed: boolean
  create_ts: Date
  stop_ts: Date | null
}
type AnalyticsPlayerTable = { player_id: string; lobby_id: string; connect_ts: Date | null; played_ms: number | null }

/** A partition a day (database/day-partitions.ts). It names no lobby and no player. */
type AnalyticsEventTable = AnalyticsChanges & {
  ts: Date
  kind: string
  series_id: number
  duration_ms: number | null
  failed: boolean | null
  exit_code: number | null
}

/** Sums of `width` seconds from `ts` on; the gauges are as of the end of them. A partition for each width. */
type AnalyticsRollUpTable = Record<AnalyticsGauge, number> &
  AnalyticsChanges & {
    line_id: number
    width: number
    ts: Date
    new_lobby_count: number
    new_player_count: number
    ready_lobby_count: number
    ready_ms: number
    played_count: number
    played_ms: number
    stopped_lobby_count: number
    failed_lobby_count: number
  }
type AnalyticsExitCodeTable = { line_id: number; width: number; ts: Date; exit_code: number; lobby_count: number }

// Written by the matchmaker. The journal is the truth; lobbies and players are what it says, projected.

/** One row a batch of commands of one shard; the key is the fence (matchmaker/shards/fence.ts). */
type JournalTable = { shard: number; seq: number; writer: string; ts: CreateTime; payload: Buffer }

/**
 * How far a reader of the journal has read a shard: no row after read_seq is removed while this one is there. Written by
 * the reader itself.
 */
type JournalReaderTable = { shard: number; reader: string; read_seq: number }

/** How far the tables lobbies and players of a shard reflect its journal. */
type ShardTable = { shard: number; projected_seq: number }

/** A process of the matchmaker. Its shards are those whose lease has its `writer`. */
type MatchmakerTable = {
  writer: string
  node_id: string
  /** Which matchmaker of the node it is. */
  process: Generated<number>
  /** Where other processes reach its HTTP. */
  address: string
  start_ts: CreateTime
  seen_ts: Generated<Date>
  /** Book time at `seen_ts`. */
  book_ms: number
  /** Until when it has served all its shards with `is_served`, in book time. */
  served_ms: number | null
  is_leaving: Generated<boolean>
}

/** Which matchmaker to ask about a shard. Never needed for safety (matchmaker/shards/fence.ts). */
type ShardLeaseTable = { shard: number; writer: string | null; served_ms: number; is_served: boolean }

/** The ports of lobbies, over all shards. `free_ms`: its lobby has ended, and it may be claimed from this book time on. */
type PortClaimTable = {
  transport: 'tcp' | 'udp'
  port: number
  shard: number
  lobby_id: string
  free_ms: number | null
}

type RoomColumns = { cpu_micro: number; memory_kb: number; lobby_count: number }

/** What the lobbies of a shard use, by region and node. `node_id`: empty for lobbies without a node. */
type ShardRoomTable = RoomColumns & { shard: number; region: string; node_id: string }

/** The same over all shards, by `node NAME`, `region NAME` or `unplaced REGION`. The maxima were in force at the last change. */
type PlaceRoomTable = RoomColumns & { place: string; cpu_micro_max: number | null; memory_kb_max: number | null }

type LobbyTable = {
  lobby_id: string
  namespace_id: string
  shard: number
  version_id: string
  game_mode: string
  region: string
  /** Where it runs; null: any runner of the region may run it. */
  node_id: string | null
  publicity: 'public' | 'private'
  is_custom: boolean
  is_closed: boolean
  /** Its server does not answer: it is not found, and not joined by id. */
  is_stalled: Generated<boolean>
  max_players_normal: number
  max_players_direct: number
  max_players_party: number
  max_spectators: Generated<number>
  tags: JsonColumn<Record<string, string>>
  /** JSON text given on create, handed to the lobby as PLATFORM_LOBBY_CONFIG. */
  lobby_config: string | null
  /** JSON text set by the lobby. */
  state: string | null
  player_count: number
  /** What its game mode said when it was created. */
  player_deadline_ms: number
  idle_grace_ms: number
  /** Null: the lobby's server checks the seats; otherwise the edge does. */
  seat_hold_ms: ColumnType<number | null, number | null | undefined, never>
  /** Code with which players join; null: it has none. */
  code: ColumnType<string | null, string | null | undefined, never>
  create_ts: Date
  /** It must call ready before this. */
  ready_deadline_ts: Date
  ready_ts: Date | null
  /** When a lobby that is empty is to be stopped; null while it has players. */
  idle_ts: Date | null
  /** Its server asked that it does not end as idle before this. */
  keep_until_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  /** The lobby is no longer wanted from here on; the runner ends what still runs. */
  stop_ts: Date | null
  stop_reason: string | null
  /** Its server has called `connected` at least once. */
  has_reported_players: Generated<boolean>
  /** Seats that expired while the edge held open connections to it; and how many were open when it was stopped. */
  seats_expired_while_connected: Generated<number>
  connections_at_stop: number | null
  /** What it may use: the name of its tier, and what the tier said when the lobby was created. */
  tier: Generated<string>
  cpu_cores: Generated<number>
  memory_mb: Generated<number>
  /** The numbers at which the edge serves its tcp and udp ports. */
  edge_ports: ColumnType<EdgePortNumber[], string | undefined, never>
  /** Identity that created the custom lobby; null when none did. */
  creator_identity_id: string | null
  /** Ray of the request that started the lobby. */
  ray_id: string | null
}

export type EdgePortNumber = { name: string; transport: 'tcp' | 'udp'; port: number }

type PlayerTable = {
  player_id: string
  lobby_id: string
  namespace_id: string
  shard: number
  /** The client bucket of addresses/client-ip.ts: an IPv4 address or an IPv6 /64. */
  client: string
  create_ts: Date
  /** A reserved player must connect, a connected one leave, before this. */
  deadline_ts: Date
  connect_ts: Date | null
  remove_ts: Date | null
  remove_reason: string | null
  /** The idempotency keys that made, connected and removed this player, each with its caller. */
  seat_key: string | null
  connect_key: string | null
  disconnect_key: string | null
  /** The identity of the player, if known; and the leader's player of the party that the player came with. */
  identity_id: string | null
  leader_player_id: string | null
  /** How the player came by the rules of the game mode. */
  match: ColumnType<object | null, string | null | undefined, never>
  is_spectator: Generated<boolean>
}

/** Clients of a namespace that have solved a captcha, until it no longer helps them; projected like players. */
type CaptchaClientTable = {
  namespace_id: string
  client: string
  shard: number
  verify_ts: Date
  expire_ts: Date
  /** Requests since then. */
  request_count: number
}

/** Requests for seats that are kept to be explained. `explanation` is JSON text: nothing that a player sends can make it refused. */
type ExplanationTable = {
  ray_id: string
  namespace_id: string
  operation: string
  create_ts: Date
  duration_us: string
  /** Null: a seat was given. */
  code: string | null
  explanation: string
}
/** A role's part of a ray, written by that role; see observe/recorder.ts. */
type RaySpanTable = {
  ray_id: string
  service: string
  operation: string
  code: string | null
  /** Null: nobody's, and the id is of no meaning. */
  owner_kind: 'namespace' | 'game' | 'user' | null
  owner_id: string
  /** The player whose seat the request gave or changed. */
  player_id: string | null
  ts: Date
  duration_us: number
  /** Label, begin and end; label, moment and another ray: microseconds after `ts`. */
  spans: JsonColumn<[string, number, number][]>
  marks: JsonColumn<[string, number, string?][]>
}
/** Versions that drain in a namespace, and those that did; projected like players. */
type DrainingVersionTable = { namespace_id: string; version_id: string; shard: number; is_draining: boolean }
/** Responses of captchas that clients have sent. Each is valid once, for the request that sent it first. */
type CaptchaClaimTable = { response_hash: Buffer; claimed_by: Buffer; is_answered: Generated<boolean>; expire_ts: Date }

// Written by api; the edge makes a certificate's row when its host is first visited.

type CertificateTable = {
  host: string
  wish_ts: Date
  /** When the host is ordered for next, at first or again. */
  next_ts: Date
  failure_count: Generated<number>
  error: string | null
  /** PEM, and the key sealed for `certificate <host>`; null until it was issued. */
  chain: string | null
  private_key: string | null
  expire_ts: Date | null
}

/** The key sealed for `acme account <directory_url>`. */
type AcmeAccountTable = { directory_url: string; private_key: string }

type AcmeChallengeTable = { token: string; host: string; key_authorization: string; expire_ts: Date }

type AcmeOrderTable = {
  order_id: string
  host: string
  registrable_domain: string
  is_renewal: boolean
  create_ts: Date
}

/** The erasure of a player. The hashes name the player to this platform only (cloud/player-data/subject.ts). */
type ErasureTable = {
  erasure_id: string
  game_id: string
  subject_hashes: string[]
  begin_ts: Date
  end_ts: Date | null
  counts: JsonColumn<Record<string, number>>
  left_over: JsonColumn<{ what: string; until_ts?: string }[]>
}

/** Players who are seated together; projected like players. An ended one is kept for a while. */
type PartyTable = {
  party_id: string
  namespace_id: string
  shard: number
  code: string
  leader_identity_id: string
  members: JsonColumn<PartyMemberRow[]>
  revision: number
  create_ts: Date
  expire_ts: Date
  end_ts: Date | null
}

type TicketTable = {
  player_id: string
  namespace_id: string
  shard: number
  /** As the journal has it. */
  record: JsonColumn<object>
  create_ts: Date
  end_ts: Date | null
  end_reason: string | null
}

type PartyMemberRow = {
  identity_id: string
  address: string
  client: string
  user_agent: string | null
  join_ms: number
}

/** A game's player: a guest of one namespace. `seen_ts`: when the device last came back, to a day. */
type IdentityTable = {
  identity_id: string
  namespace_id: string
  display_name: string
  account_number: number
  create_ts: CreateTime
  seen_ts: Date
}

// Written by the runner.

/** Where a running lobby listens, by port name. `hostname` and `port` are reachable from the edge on the same machine. */
/** `protocol`: its name in the version config. Times: milliseconds since the epoch. */
export type ProtocolReportRow = {
  protocol: string
  state: string
  health_ts: number | null
  is_healthy: boolean | null
}

export type RunPort = {
  protocol: PortProtocol
  hostname: string
  port: number
  /** As the version config says; absent: not. */
  proxy_protocol?: boolean
  require_player_token?: boolean
  /** How the edge admits players; absent: the server checks the seats. */
  admission?: Admission
  /** IPv4 network of which each player has an address of its own towards the server; absent: none has. */
  player_network?: string
}

/**
 * `open` and `shut`: the names of the run's ports at which its server does, and does not listen. `others`: sockets that
 * listen elsewhere, such as `tcp 127.0.0.1:3000`; null where the system does not show whose sockets are whose. `remedy`:
 * what its developer changes.
 */
export type Listening = { open: string[]; shut: string[]; others: string[] | null; remedy?: string }

type LobbyRunTable = {
  lobby_id: string
  runner_id: string
  driver: string
  /** What the driver needs to find the process again after a restart. */
  handle: JsonColumn<unknown>
  ports: JsonColumn<Record<string, RunPort>>
  create_ts: CreateTime
  start_ts: Date | null
  /** Since when its server does not answer; null while it does. At the end it stays as it was. */
  stall_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  exit_ts: Date | null
  exit_code: number | null
  /** How it ended: the ExitReason of runner/drivers/driver.ts. */
  exit_reason: string | null
  /** What shows that its server is ready, and when the runner saw it; null: the server itself calls ready. */
  ready_check: ColumnType<ReadyCheck, string | null | undefined, never>
  seen_ready_ts: ColumnType<Date | null, Date | null | undefined, Date | null>
  /** Where its server listens, as seen while it was not ready; null when it was never checked. */
  listening: ColumnType<Listening | null, string | null | undefined, string | null>
  /** What its server reported in the protocol of another platform; null: nothing. */
  protocol_report: ColumnType<ProtocolReportRow | null, string | null | undefined, string | null>
  /** The last lines that a server wrote which failed; null of all others. */
  log_tail: ColumnType<string[] | null, string | null | undefined, string | null>
  /** The time of one core that it used; null while it runs, and where it was not counted. */
  cpu_ms: ColumnType<number | null, number | null | undefined, number | null>
  /**
   * Namespace and resources of the run: it is kept when its lobby, and even its namespace, is gone. Null in old rows
   * only.
   */
  namespace_id: string | null
  region: string | null
  cpu_cores: number | null
  /** Game and group that the run belonged to when it began. */
  game_id: string | null
  group_id: string | null
  /** Build that the run uses; null when it uses none. */
  build_id: string | null
}

/** How the run of a lobby ended, as the runner says. */
export type RunEnd = Pick<LobbyRunTable, 'exit_code' | 'exit_reason'>

/** A runner's report of every second; `ts` is by the clock of the database. Not logged. Its id is that of its node. */
type RunnerTable = {
  runner_id: string
  /** The regions whose lobbies it runs. */
  regions: string[]
  disk_free_bytes: number
  /** What its lobbies may use together; null: no limit. */
  cpu_cores: number | null
  memory_mb: number | null
  /** Local ports that no lobby has. */
  port_count: Generated<number>
  /** Version of the program. */
  version: Generated<string>
  /** Why it starts no lobby (runner/drivers/driver.ts); null: it does. */
  refusal: 'no_manager' | 'not_available' | null
  /** What its machine uses and has; null: not known. */
  used_cpu_cores: number | null
  used_memory_mb: number | null
  machine_cpu_cores: number | null
  machine_memory_mb: number | null
  /** Grows with each report. */
  report_seq: Generated<number>
  ts: Generated<Date>
}

/** The answer to a question of the api about the logs of this runner's lobbies; it goes with the question. */
type LogAnswerTable = { question_id: string; answer: string }

// Written by the edge.

/** The numbers at which the edge listens (tcp) or is bound (udp): of these the matchmaker gives to new lobbies. */
type EdgePortTable = { node_id: string; transport: 'tcp' | 'udp'; port: number }

/**
 * From before the edge accepts a connection until it has ended; the next edge of the same node removes it too. `edge_id`
 * is new with each registration. `silent_ts`: since when its reports are missing, written by the matchmaker. `public_host` and
 * the ports: where players reach this edge; null: at the addresses of the platform only. `unnamed_proxy`: the address of a proxy
 * in front of it that the operator has not named, last seen at `unnamed_proxy_ts`. `regions`: where it stands. `ping_port`: of its
 * UDP echo; null: it has none.
 */
type EdgeTable = {
  edge_id: string
  node_id: string
  /** Which edge of the node it is. */
  process: Generated<number>
  start_ts: CreateTime
  silent_ts: Date | null
  public_host: string | null
  http_port: number | null
  https_port: number | null
  unnamed_proxy: string | null
  unnamed_proxy_ts: Date | null
  regions: string[] | null
  ping_port: number | null
}

/**
 * Players with connections through an edge, to lobbies whose seats it checks. Not logged. `change_seq` grows with each
 * change of the edge. A player without a connection stays for a minute, with `is_open` false.
 */
type EdgePlayerTable = {
  edge_id: string
  player_id: string
  lobby_id: string
  namespace_id: string
  is_open: boolean
  change_seq: number
}

/**
 * Written by the matchmaker: what the book says of a player of edge_players, as of `change_seq` there. `code`: why the player
 * has no seat; null: admitted. Not logged.
 */
type EdgeAdmissionTable = { edge_id: string; player_id: string; change_seq: number; code: string | null }

/** Every second; `change_seq`: the last of its reports that changed a count. Not logged, as are the counts. */
type EdgeReportTable = { edge_id: string; report_seq: number; change_seq: number }

/** Bytes between clients and a lobby, over all edges. Not logged. One without traffic for an hour is removed. */
type LobbyTrafficTable = {
  lobby_id: string
  bytes_in: number
  bytes_out: number
  ts: Generated<Date>
  refused_count: Generated<number>
  refused_client: string | null
}

/** What a running lobby uses, as of its newest sample: busy cores, and bytes of memory. Not logged. */
type LobbyUsageTable = { lobby_id: string; namespace_id: string; cpu_cores: number; memory_bytes: number }

/** Open connections to a lobby through an edge, as of the report `change_seq`. One that is 0 stays for a minute. */
type LobbyConnectionTable = { edge_id: string; lobby_id: string; connection_count: number; change_seq: number }

/** `node_id`: the node whose disk has the folder. `game`: only this game was restored, into this platform. `failure`: a sentence; null while it runs, and when it succeeded. */
type RestoreTable = {
  restore_id: string
  backup: string
  folder: string | null
  game: string | null
  node_id: string
  begin_ts: Date
  end_ts: Date | null
  failure: string | null
}
