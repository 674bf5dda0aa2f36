// The overview of a person: problems with what mends them, players and lobbies now and over the last hour, and the last deploys.
import Type, { type Static } from 'typebox'
import { GameId, GroupId, NamespaceId, VersionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, IsCut, object, Timestamp } from '../records.ts'
import { Role } from './groups.ts'
import { NamespaceVersion } from './namespace-cdn.ts'

/** Groups of one overview. */
export const OVERVIEW_GROUPS_MAX = 100
/** Games of one overview. */
export const OVERVIEW_GAMES_MAX = 200
/** Namespaces of one overview. */
export const OVERVIEW_NAMESPACES_MAX = 200
/** Problems of one overview. */
export const OVERVIEW_PROBLEMS_MAX = 100
/** Deploys of one overview. */
export const OVERVIEW_DEPLOYS_MAX = 20
/** Points of the last hour. */
export const OVERVIEW_MINUTES = 60

export const PROBLEM_KINDS = [
  'version_crashing',
  'lobbies_stalled',
  'captcha_provider_failing',
  'domain_unproven',
  'certificate_expiring',
  'lobby_limit_near',
  'quota_near',
  'notice_target_paused',
  'role_away',
  'disk_low',
  'backup_missing',
  'backup_failed',
  'verification_failed',
  'job_failing',
  'unnamed_proxy',
] as const
export type ProblemKind = (typeof PROBLEM_KINDS)[number]

const Remedy = object(
  {
    kind: Type.Enum(['roll_back', 'prove_domain', 'open_page'], {
      description:
        '`roll_back`: deploy `version_id` to `namespace_id`. `prove_domain`: set the DNS record of `domain`. `open_page`: open `page`.',
    }),
    game_id: Type.Optional(described(GameId, 'Game that the remedy acts on.')),
    namespace_id: Type.Optional(described(NamespaceId, 'Namespace that the remedy acts on.')),
    version_id: Type.Optional(described(VersionId, 'Version to deploy, for `roll_back`.')),
    version_display_name: Type.Optional(
      Type.String({ description: 'Display name of the version to deploy, for `roll_back`. Example: `1.1.0`.' }),
    ),
    domain: Type.Optional(Type.String({ description: 'Domain to prove, for `prove_domain`.' })),
    page: Type.Optional(
      Type.Enum(
        ['lobbies', 'domains', 'limits', 'quotas', 'rays', 'processes', 'jobs', 'backups', 'checks', 'notices'],
        {
          description: 'Page with the details, for `open_page`.',
        },
      ),
    ),
  },
  'What mends the problem.',
)

export const Problem = object(
  {
    kind: Type.Enum([...PROBLEM_KINDS], {
      description:
        '`version_crashing`: lobby servers of the version failed in the last hour. `lobbies_stalled`: lobby servers do not respond. `captcha_provider_failing`: captchas could not be checked in the last ten minutes. `domain_unproven`: a custom domain has no proof. `certificate_expiring`: a certificate ends soon, or cannot be ordered. `lobby_limit_near`: the namespace has 80 % of its lobbies. `quota_near`: the group uses 80 % of a quota. `notice_target_paused`: a target of notices takes none. For administrators only: `role_away`: a role of the platform does not run. `disk_low`: a runner has little disk space. `backup_missing`: no backup was made for a week. `backup_failed`: the last backup of the schedule failed. `verification_failed`: the last `muster verify` found something wrong. `job_failing`: a job of the platform failed. `unnamed_proxy`: a proxy in front of an edge is not named in the settings, so all its players count as one client.',
    }),
    severity: Type.Enum(['error', 'warning'], {
      description: '`error`: something fails now. `warning`: something may fail soon.',
    }),
    title: Type.String({ description: 'What is wrong, as a short sentence. Example: `1.2.0 crashes in prod`.' }),
    text: Type.String({
      description:
        'Details, as a sentence. Example: `3 of 4 servers failed within the last hour, the last with exit code 1.`',
    }),
    group_id: Type.Optional(GroupId),
    game_id: Type.Optional(GameId),
    namespace_id: Type.Optional(NamespaceId),
    version_id: Type.Optional(VersionId),
    domain: Type.Optional(Type.String({ description: 'Custom domain or host. Example: `play.example.com`.' })),
    region: Type.Optional(Type.String({ description: 'Name of the region, for problems of a runner.' })),
    role: Type.Optional(Type.String({ description: 'Role of the platform, for `role_away`. Example: `edge`.' })),
    quota: Type.Optional(Type.String({ description: 'Name of the quota, for `quota_near`. Example: `builds`.' })),
    count: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'How many failed or stalled; for quotas and limits, how many are used.',
      }),
    ),
    count_max: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'For quotas and limits, the maximum; for crashes, all servers that ended.',
      }),
    ),
    exit_code: Type.Optional(Type.Integer({ description: 'Exit code of the last server that failed.' })),
    since_ts: Type.Optional(Timestamp('When it was first or last seen.')),
    expire_ts: Type.Optional(Timestamp('When the certificate expires.')),
    remedy: Remedy,
  },
  'Something that is wrong now or may soon be.',
)
export type Problem = Static<typeof Problem>

const FirstSteps = object(
  {
    has_game: Type.Boolean({ description: 'Whether the group has a game.' }),
    has_build: Type.Boolean({ description: 'Whether a build was uploaded completely.' }),
    has_deploy: Type.Boolean({
      description: 'Whether a version was deployed, besides the empty version that each game begins with.',
    }),
    has_player: Type.Boolean({ description: 'Whether a player has received a seat.' }),
  },
  'First steps of a group that are done.',
)

const Counts = (what: string) =>
  Type.Array(Type.Integer({ minimum: 0 }), {
    maxItems: OVERVIEW_MINUTES,
    description: `${what} at the end of each of the 60 minutes, the oldest first. The last is the count now.`,
  })

export const OverviewNamespace = object(
  {
    namespace_id: NamespaceId,
    game_id: GameId,
    name_id: Type.String({ description: 'Short name of the namespace. Example: `prod`.' }),
    display_name: Type.String({ description: 'Name for people.' }),
    version_id: VersionId,
    version_display_name: Type.String({ description: 'Display name of the deployed version. Example: `1.2.0`.' }),
    player_count: Type.Integer({ minimum: 0, description: 'Players with a seat now, reserved or connected.' }),
    lobby_count: Type.Integer({ minimum: 0, description: 'Lobbies that run now, in all versions.' }),
    last_hour: object(
      {
        start_ts: Timestamp('Start of the first minute.'),
        player_counts: Counts('Players'),
        lobby_counts: Counts('Lobbies'),
      },
      'The last 60 minutes.',
    ),
  },
  'A namespace with its counts.',
)
export type OverviewNamespace = Static<typeof OverviewNamespace>

export const OverviewDeploy = object(
  {
    ...NamespaceVersion.properties,
    game_id: GameId,
    version_display_name: Type.String({ description: 'Display name of the version. Example: `1.2.0`.' }),
    outcome: Type.Enum(['ready', 'failed', 'unknown'], {
      description:
        '`ready`: a lobby server of this deploy called ready. `failed`: none did, and at least one failed. `unknown`: no lobby server of it has started, or its record is no longer kept.',
    }),
  },
  'A deploy and whether it worked.',
)
export type OverviewDeploy = Static<typeof OverviewDeploy>

export const getOverview = operation({
  id: 'overview.get',
  service: 'api',
  method: 'GET',
  path: '/cloud/overview',
  summary:
    "Gets what is wrong in the caller's groups and games, what runs there, and the last deploys. Administrators get all groups.",
  auth: ['admin', 'user'],
  role: 'viewer',
  rate_limit: 'cloud',
  query: object({
    group_id: Type.Optional(described(GroupId, "Only this group. Default: all of the caller's groups.")),
  }),
  response: object({
    ts: Timestamp('When the overview was made.'),
    problems: Type.Array(Problem, { description: 'Problems, errors first.' }),
    groups: Type.Array(
      object({
        group_id: GroupId,
        display_name: Type.String({ description: 'Name for people.' }),
        role: Type.Optional(described(Role, 'Role of the caller. Absent when the caller is not a member.')),
        first_steps: FirstSteps,
      }),
      { description: 'The groups, newest first.' },
    ),
    games: Type.Array(
      object({
        game_id: GameId,
        group_id: GroupId,
        name_id: Type.String({ description: 'Short name of the game. Example: `arena`.' }),
        display_name: Type.String({ description: 'Name for people.' }),
        player_count: Type.Integer({ minimum: 0, description: 'Players of its namespaces here.' }),
        lobby_count: Type.Integer({ minimum: 0, description: 'Lobbies of its namespaces here.' }),
      }),
      { description: 'The games, newest first.' },
    ),
    namespaces: Type.Array(OverviewNamespace, { description: 'Namespaces of these games, newest first.' }),
    deploys: Type.Array(OverviewDeploy, { description: 'The last deploys, newest first.' }),
    is_cut: IsCut(
      `It has at most ${OVERVIEW_GROUPS_MAX} groups, ${OVERVIEW_GAMES_MAX} games, ${OVERVIEW_NAMESPACES_MAX} namespaces and ${OVERVIEW_PROBLEMS_MAX} problems.`,
    ),
  }),
  errors: ['GROUP_NOT_FOUND'],
})
