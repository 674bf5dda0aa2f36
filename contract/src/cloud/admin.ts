// What the operator sees of the platform: groups, people, regions, processes, jobs, settings, backups and checks.
import Type from 'typebox'
import { GroupId, Id, IdentityId, RegionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Bytes, described, IsCut, NameId, object, Timestamp } from '../records.ts'
import { FindDurations } from './analytics.ts'
import { QuotaUse } from './quotas.ts'
import { RegionTier } from './tiers.ts'

/** Groups or people of one response. */
export const ADMIN_PAGE_MAX = 100
const PAGE_DEFAULT = 50
export const ADMIN_PAGE_DEFAULT = PAGE_DEFAULT
/** Characters of a text to search groups or people for. */
const TEXT_LENGTH_MAX = 128

const Count = (description: string) => Type.Integer({ minimum: 0, description })
const Limit = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: ADMIN_PAGE_MAX,
    description: `Entries of the response. Default: ${PAGE_DEFAULT}.`,
  }),
)
const SearchText = (of: string) =>
  Type.Optional(
    Type.String({ maxLength: TEXT_LENGTH_MAX, description: `Only entries with this text in ${of}, in any case.` }),
  )

const AdminGroup = object(
  {
    group_id: GroupId,
    display_name: Type.String({ description: 'Name for people.' }),
    create_ts: Timestamp('When the group was created.'),
    owner: Type.Optional(
      object(
        {
          identity_id: IdentityId,
          display_name: Type.String({ description: 'Name for people.' }),
          email: Type.Optional(Type.String({ description: 'E-mail address. Absent for users of access tokens.' })),
        },
        'The owner. Absent when the group has none.',
      ),
    ),
    lobby_count: Count('Lobbies that run now.'),
    player_count: Count('Players with a seat now.'),
    quotas: Type.Array(QuotaUse, { description: 'Each quota with its use.' }),
  },
  'A group, as the operator sees it.',
)

const AdminUser = object(
  {
    identity_id: IdentityId,
    display_name: Type.String({ description: 'Name for people.' }),
    email: Type.Optional(Type.String({ description: 'E-mail address. Absent for users of access tokens.' })),
    access_name: Type.Optional(
      Type.String({ description: 'Name of the access token. Absent for users with an e-mail address.' }),
    ),
    create_ts: Timestamp('When the user was created.'),
    seen_ts: Type.Optional(Timestamp('When a session of the user was last refreshed. Absent without sessions.')),
    group_count: Count('Groups of which the user is a member.'),
    session_count: Count('Sessions that are valid now.'),
  },
  'A user, as the operator sees it.',
)

const AdminRegion = object(
  {
    region_id: RegionId,
    region_name_id: Type.String({ description: 'Name of the region in version configs. Example: `frankfurt`.' }),
    region_display_name: Type.String({ description: 'Name for people. Example: `Frankfurt`.' }),
    default_tier: Type.String({ description: 'Tier of game modes that name none. Example: `basic-1d1`.' }),
    tiers: Type.Array(RegionTier, { description: 'Tiers that lobbies may have here.' }),
    cpu_cores: Type.Number({ minimum: 0, description: 'Cores that the running lobbies may use together.' }),
    cpu_cores_max: Type.Optional(
      Type.Number({ minimum: 0, description: 'Cores of the region. Absent without a limit.' }),
    ),
    memory_mb: Type.Number({ minimum: 0, description: 'Memory of the running lobbies in MiB.' }),
    memory_mb_max: Type.Optional(
      Type.Number({ minimum: 0, description: 'Memory of the region in MiB. Absent without a limit.' }),
    ),
    lobby_count: Count('Lobbies that run now.'),
    player_count: Count('Players with a seat now.'),
    use_by_tier: Type.Array(
      object(
        {
          tier_name_id: Type.String({ description: 'Name of the tier. Example: `basic-1d1`.' }),
          lobby_count: Count('Lobbies that run now.'),
        },
        'Lobbies of a tier.',
      ),
      { description: 'Running lobbies by tier.' },
    ),
    runners: Type.Array(
      object(
        {
          runner_id: Type.String({ description: 'Name of the runner.' }),
          disk_free_bytes: Bytes('Free disk space.'),
          seen_ts: Timestamp('When it last reported.'),
        },
        'A runner of the region.',
      ),
      { description: 'Runners that report for the region.' },
    ),
  },
  'A region with its capacity and use.',
)

const AdminProcess = object(
  {
    name: Type.String({ description: 'Role, and its node where that is known. Example: `matchmaker of fra-1`.' }),
    role: Type.String({ description: 'Role. Example: `matchmaker`. `database`: PostgreSQL.' }),
    state: Type.Enum(['running', 'away'], {
      description: '`running`: it reports, or is connected to the database. `away`: it does not.',
    }),
    text: Type.String({ description: 'What is known about the process, as a sentence.' }),
    node_id: Type.Optional(Type.String({ description: 'Machine and data folder, or name of the runner.' })),
    regions: Type.Optional(Type.Array(Type.String(), { description: 'Names of the regions of a runner.' })),
    seen_ts: Type.Optional(Timestamp('When it last reported.')),
    start_ts: Type.Optional(Timestamp('When its process started.')),
    connection_count: Type.Optional(Count('Its connections to the database.')),
  },
  'A process of the platform.',
)

const AdminJob = object(
  {
    name: Type.String({ description: 'What the job does or removes. Example: `uploads`.' }),
    role: Type.String({ description: 'Role that runs it. Example: `api`.' }),
    kind: Type.Enum(['sweep', 'task'], {
      description: '`sweep`: it removes what is no longer needed, again and again. `task`: it runs when it is planned.',
    }),
    last_run_ts: Type.Optional(
      Timestamp('When it last ended. Runs are recorded at most once a minute. Absent before the first run.'),
    ),
    last_duration_ms: Type.Optional(Count('Duration of that run. Milliseconds.')),
    failure: Type.Optional(Type.String({ description: 'Why the last run failed. Absent when it succeeded.' })),
    last_success_ts: Type.Optional(Timestamp('When it last succeeded. Absent before the first success.')),
    waiting_count: Type.Optional(Count('For tasks: planned runs.')),
    next_run_ts: Type.Optional(Timestamp('For tasks: when the next run is planned. Absent when none is.')),
  },
  'A job that the platform does again and again.',
)

const AdminSetting = object(
  {
    name: Type.String({ description: 'Name of the environment variable. Example: `MUSTER_LOG_LEVEL`.' }),
    source: Type.Enum(['environment', 'default'], {
      description: '`environment`: set by the operator, or chosen by `muster start`. `default`: not set.',
    }),
    value: Type.Optional(
      Type.String({
        description: 'Value in force. Absent for secrets, and for defaults that follow from other settings.',
      }),
    ),
    default: Type.Optional(Type.String({ description: 'The default. Absent when it is empty.' })),
    is_secret: Type.Boolean({ description: 'Whether the value is secret, and therefore never returned.' }),
    description: Type.String({ description: 'What the setting does.' }),
  },
  'A setting of the api role.',
)

const Backup = object(
  {
    backup_id: Type.String({ format: 'uuid', description: 'Id of the backup.' }),
    folder: Type.String({ description: 'Folder on the machine where `muster backup` ran.' }),
    create_ts: Timestamp('Moment of the data in it.'),
    end_ts: Timestamp('When it was complete.'),
    row_count: Count('Rows.'),
    object_count: Count('Uploaded files.'),
    object_bytes: Bytes('Bytes of the uploaded files.'),
    lacking_count: Count('Uploaded files that the platform had lost before, and that are not in the backup.'),
  },
  'A backup that `muster backup` made.',
)

const BackupSchedule = object(
  {
    to: Type.String({ description: 'Folder or bucket that gets the backups (MUSTER_BACKUP_TO).' }),
    schedule: Type.String({
      description: 'Five fields of cron, in UTC (MUSTER_BACKUP_SCHEDULE). Example: `0 4 * * *`.',
    }),
    keep: Type.String({ description: 'Which backups stay (MUSTER_BACKUP_KEEP). Example: `7d 4w 12m`.' }),
    is_encrypted: Type.Boolean({ description: 'Whether the backups are encrypted (MUSTER_BACKUP_KEY).' }),
    last_ts: Type.Optional(Timestamp('When the last backup into this place was complete. Absent before the first.')),
    next_ts: Type.Optional(Timestamp('When the next one begins. Absent when none is planned.')),
    failure: Type.Optional(Type.String({ description: 'Why the last run failed. Absent when it succeeded.' })),
  },
  'Backups that the platform makes. Absent when MUSTER_BACKUP_TO is not set.',
)

const Restore = object(
  {
    restore_id: Type.String({ format: 'uuid', description: 'Id of the restore.' }),
    backup: Type.String({ description: 'Name of the backup. Example: `2026-11-24T040000Z`.' }),
    folder: Type.Optional(Type.String({ description: 'Data folder of the restored platform.' })),
    game: Type.Optional(
      Type.String({ description: 'The game, where only one was restored: its short name or id in the backup.' }),
    ),
    node_id: Type.String({ description: 'Node whose disk has the folder.' }),
    begin_ts: Timestamp('When it began.'),
    end_ts: Type.Optional(Timestamp('When it ended. Absent while it is under way.')),
    failure: Type.Optional(Type.String({ description: 'Why it failed. Absent when it succeeded.' })),
  },
  'A restore of a backup into a folder.',
)

const Verification = object(
  {
    subject: Type.Enum(['platform', 'backup'], { description: 'What `muster verify` has checked.' }),
    folder: Type.Optional(Type.String({ description: 'Folder of the backup. Absent for the platform.' })),
    end_ts: Timestamp('When the check ended.'),
    is_sound: Type.Boolean({ description: 'Whether nothing was wrong.' }),
    finding_count: Count('Things that were wrong.'),
  },
  'A run of `muster verify`.',
)

const Finding = object(
  {
    check: Type.String({ description: 'Subject of the check. Example: `disk`.' }),
    status: Type.Enum(['ok', 'warning', 'failed', 'skipped'], {
      description: '`skipped`: the check has nothing to examine here.',
    }),
    message: Type.String({ description: 'What was found.' }),
    remedy: Type.Optional(Type.String({ description: 'A command that mends it. Absent when nothing is wrong.' })),
  },
  'What a check found.',
)

const defaults = { service: 'api', auth: ['admin'], rate_limit: 'cloud', method: 'GET' } as const

export const listAdminGroups = operation({
  ...defaults,
  id: 'admin.listGroups',
  path: '/admin/groups',
  summary: 'Lists all groups with their owners, counts and quotas, newest first.',
  query: object({
    text: SearchText('the name'),
    before_group_id: Type.Optional(
      described(GroupId, 'Continues a list: the last `group_id` of the previous response. Default: the newest groups.'),
    ),
    limit: Limit,
  }),
  response: object({
    groups: Type.Array(AdminGroup, { description: 'The groups, newest first.' }),
    is_cut: IsCut('Continue with `before_group_id`.'),
  }),
})

export const listAdminUsers = operation({
  ...defaults,
  id: 'admin.listUsers',
  path: '/admin/users',
  summary: 'Lists all users, newest first.',
  query: object({
    text: SearchText('the name, e-mail address or name of the access token'),
    before_identity_id: Type.Optional(
      described(
        IdentityId,
        'Continues a list: the last `identity_id` of the previous response. Default: the newest users.',
      ),
    ),
    limit: Limit,
  }),
  response: object({
    users: Type.Array(AdminUser, { description: 'The users, newest first.' }),
    is_cut: IsCut('Continue with `before_identity_id`.'),
  }),
})

export const listAdminRegions = operation({
  ...defaults,
  id: 'admin.listRegions',
  path: '/admin/regions',
  summary: 'Lists the regions with their tiers, capacity and use.',
  response: object({ regions: Type.Array(AdminRegion, { description: 'The regions, in the order of muster.toml.' }) }),
})

export const listAdminProcesses = operation({
  ...defaults,
  id: 'admin.listProcesses',
  path: '/admin/processes',
  summary: 'Lists the processes of the platform, and roles that no process runs.',
  response: object({
    processes: Type.Array(AdminProcess, { description: 'The processes: each role of each node once.' }),
  }),
})

export const getAdminFinds = operation({
  ...defaults,
  id: 'admin.getFinds',
  path: '/admin/finds',
  summary: 'Gets how many finds got a seat in the last hour on the whole platform, and how long they took.',
  response: object({
    last_hour: Type.Optional(
      object(
        {
          find_count: Count('Finds that got a seat.'),
          duration_p50: Type.Number({ description: 'Milliseconds within which half of them got it.' }),
          duration_p95: Type.Number({ description: 'Milliseconds within which 95 % of them got it.' }),
          duration_p99: Type.Number({ description: 'Milliseconds within which 99 % of them got it.' }),
        },
        'All finds of the hour. Absent without a find.',
      ),
    ),
    minutes: described(FindDurations, 'The same by minute, of the minutes with finds.'),
  }),
})

export const listAdminJobs = operation({
  ...defaults,
  id: 'admin.listJobs',
  path: '/admin/jobs',
  summary: 'Lists what the platform does again and again, with the last run and its failure.',
  response: object({ jobs: Type.Array(AdminJob, { description: 'The jobs, those that failed first.' }) }),
})

export const listAdminSettings = operation({
  ...defaults,
  id: 'admin.listSettings',
  path: '/admin/settings',
  summary: 'Lists the settings in force, and where each comes from. Secret values are never returned.',
  response: object({
    settings: Type.Array(AdminSetting, { description: 'The settings, in the order of the documentation.' }),
  }),
})

export const getAdminBackups = operation({
  ...defaults,
  id: 'admin.getBackups',
  path: '/admin/backups',
  summary: 'Gets the schedule of backups, the last backups, runs of `muster verify`, and restores.',
  response: object({
    schedule: Type.Optional(BackupSchedule),
    backups: Type.Array(Backup, { description: 'The last 20 backups, newest first.' }),
    verifications: Type.Array(Verification, { description: 'The last 20 runs of `muster verify`, newest first.' }),
    restores: Type.Array(Restore, {
      description: 'The last 20 restores by `admin.restoreBackup` and `admin.restoreGame`, newest first.',
    }),
  }),
})

export const runAdminBackup = operation({
  ...defaults,
  id: 'admin.runBackup',
  method: 'POST',
  path: '/admin/backups/run',
  summary: 'Begins a backup into MUSTER_BACKUP_TO now. The next one by the schedule follows when it ends.',
  response: object({}),
  errors: ['BACKUP_UNAVAILABLE'],
})

export const listStoredBackups = operation({
  ...defaults,
  id: 'admin.listStoredBackups',
  path: '/admin/backups/stored',
  summary: 'Lists the finished backups in MUSTER_BACKUP_TO, also those that another platform made there.',
  response: object({
    backups: Type.Array(
      object(
        {
          name: Type.String({ description: 'Name of the backup: its time. Example: `2026-11-24T040000Z`.' }),
          create_ts: Timestamp('Moment of the data in it.'),
        },
        'A backup of the repository.',
      ),
      { description: 'The backups, newest first, at most 1,000.' },
    ),
  }),
  errors: ['BACKUP_UNAVAILABLE'],
})

const BackupName = Type.String({
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{6}Z$',
  description: 'Name of a backup of `admin.listStoredBackups`.',
  examples: ['2026-11-24T040000Z'],
})

export const restoreAdminBackup = operation({
  ...defaults,
  id: 'admin.restoreBackup',
  method: 'POST',
  path: '/admin/backups/restore',
  summary:
    'Begins to restore a backup into an empty folder on the machine of the api. The platform there starts with MUSTER_DATA, when this one is stopped.',
  body: object({
    name: BackupName,
    folder: Type.String({
      minLength: 2,
      maxLength: 1_024,
      description: 'Absolute path of a folder that is empty or not there. Example: `/var/lib/muster-restored`.',
      examples: ['/var/lib/muster-restored'],
    }),
  }),
  response: object({ restore_id: Type.String({ format: 'uuid', description: 'Id of the restore.' }) }),
  errors: ['BACKUP_UNAVAILABLE'],
})

export const restoreGame = operation({
  ...defaults,
  id: 'admin.restoreGame',
  method: 'POST',
  path: '/admin/backups/restore-game',
  summary:
    'Begins to restore one game of a backup into this platform. The game keeps its ids. Refused while the platform has the game; `admin.getBackups` shows the end.',
  body: object({
    name: BackupName,
    game: Type.String({
      minLength: 1,
      maxLength: 64,
      description: 'Short name or id of the game at the time of the backup. Example: `arena`.',
      examples: ['arena'],
    }),
    group_id: Type.Optional(
      Id('Id of the group that develops the game here. Default: the same group, which is made where it is missing.'),
    ),
    name_id: Type.Optional(
      described(NameId, 'Short name of the game here, where another game has its name. Default: the same.'),
    ),
  }),
  response: object({ restore_id: Type.String({ format: 'uuid', description: 'Id of the restore.' }) }),
  errors: ['BACKUP_UNAVAILABLE'],
})

export const runAdminChecks = operation({
  ...defaults,
  id: 'admin.runChecks',
  method: 'POST',
  path: '/admin/checks',
  summary:
    'Runs the checks of `muster doctor` in the api role. It takes up to 30 s. Calls at the same time share one run.',
  response: object({
    run_ts: Timestamp('When the checks ended.'),
    findings: Type.Array(Finding, { description: 'What each check found.' }),
  }),
})
