// What is wrong now, as the overview finds it and a little more, each under a key that stays the same while it lasts.
import type { ErrorCode, listNodes, NoticeEvent, Problem, ProblemKind, ResponseOf } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { listAllNodes } from '../nodes/nodes.ts'
import type { NowCount } from '../overview/counts.ts'
import { platformProblems } from '../overview/platform-problems.ts'
import { countRefusals, gameProblems } from '../overview/problems.ts'
import type { OverviewScope } from '../overview/scope.ts'
import { CRASHES_IN_A_ROW, readFailedServers } from './ended-servers.ts'
import type { FoundNotice } from './notice.ts'

/** `hold_ms`: how long it must last before it is noticed. */
export type Condition = Omit<FoundNotice, 'source' | 'ts_ms'> & {
  key: string
  hold_ms: number
}

/** A node whose program is replaced does not report for some seconds. */
const NODE_HOLD_MS = 30_000

/** Kinds of problems that become notices as they are. */
const EVENTS: Partial<Record<ProblemKind, NoticeEvent>> = {
  lobbies_stalled: 'lobbies_stalled',
  captcha_provider_failing: 'captcha_failing',
  domain_unproven: 'domain_failing',
  certificate_expiring: 'certificate_failing',
  lobby_limit_near: 'limit_near',
  quota_near: 'limit_near',
  role_away: 'node_away',
  disk_low: 'disk_low',
  backup_failed: 'backup_failed',
  backup_missing: 'backup_missing',
  verification_failed: 'backup_missing',
  job_failing: 'job_failing',
}
const REFUSALS: Partial<Record<ErrorCode, { event: NoticeEvent; title: string }>> = {
  MATCHMAKER_REGION_FULL: { event: 'region_full', title: 'A region is full' },
  MATCHMAKER_VERIFICATION_REQUEST_FAILED: {
    ...{ event: 'verification_failing', title: "The game's own verification does not respond" },
  },
}

export async function gameConditions(
  ctx: Context,
  scope: OverviewScope,
  counts: ReadonlyMap<string, NowCount>,
): Promise<Condition[]> {
  const problems = (await gameProblems(ctx, scope, counts)).flatMap(conditionOf)
  return [...problems, ...(await refusalConditions(ctx, scope)), ...(await crashConditions(ctx, scope))]
}

export async function platformConditions(ctx: Context): Promise<Condition[]> {
  const [problems, { nodes }] = await Promise.all([platformProblems(ctx), listAllNodes(ctx)])
  return [...problems.flatMap(conditionOf), ...nodes.flatMap(nodeCondition)]
}

/** A domain without a proof is usual for some minutes, so only a failed one counts. */
function conditionOf(problem: Problem): Condition[] {
  const { kind, severity, title, text, group_id, game_id, namespace_id, region } = problem
  const event = EVENTS[kind]
  if (event === undefined || (kind === 'domain_unproven' && severity !== 'error')) return []
  const about = [group_id, namespace_id, problem.version_id, problem.domain, problem.quota, problem.role, region]
  return [
    {
      // A job that fails has its name in the title only.
      key: [kind, ...about, kind === 'job_failing' ? title : ''].join(' '),
      ...{ event, severity, title, text },
      ...(group_id === undefined ? {} : { group_id }),
      ...(game_id === undefined ? {} : { game_id }),
      ...(namespace_id === undefined ? {} : { namespace_id }),
      ...(region === undefined ? {} : { region }),
      hold_ms: kind === 'role_away' ? NODE_HOLD_MS : 0,
    },
  ]
}

async function refusalConditions(ctx: Context, scope: OverviewScope): Promise<Condition[]> {
  const codes = Object.keys(REFUSALS) as ErrorCode[]
  const rows = await countRefusals(ctx, scope.namespace_ids, codes)
  return rows.map(({ namespace_id, code, count, last_ray_id }) => ({
    ...REFUSALS[code]!,
    key: `${code} ${namespace_id}`,
    severity: 'error',
    text: `${count === 1 ? 'A request was' : `${count} requests were`} refused in the last ten minutes.`,
    ...placeOf(scope, namespace_id),
    ...{ ray_id: last_ray_id, hold_ms: 0 },
  }))
}

async function crashConditions(ctx: Context, scope: OverviewScope): Promise<Condition[]> {
  const servers = await readFailedServers(ctx, scope.group_ids, scope.namespace_ids)
  return servers.flatMap(({ namespace_id, version_id, version, count, reason, exit_code, lines, ...server }) => {
    const end = reason === 'exit' ? `with exit code ${exit_code ?? 'unknown'}` : `with \`${reason}\``
    const common = {
      severity: 'error' as const,
      ...placeOf(scope, namespace_id),
      ...{ lobby_id: server.lobby_id, node_id: server.node_id, region: server.region },
      ...(server.ray_id === null ? {} : { ray_id: server.ray_id }),
      ...(lines === null ? {} : { lines }),
      hold_ms: 0,
    }
    const crashing: Condition = {
      ...{ ...common, key: `crashing ${namespace_id} ${version_id}`, event: 'servers_crashing' },
      title: `Servers of ${version} crash`,
      text: `The last ${CRASHES_IN_A_ROW} servers failed; the last one ended ${end}.`,
    }
    const never_ready: Condition = {
      ...{ ...common, key: `never ready ${namespace_id} ${version_id}`, event: 'never_ready' },
      title: `A server of ${version} was never ready`,
      text: 'It ran and did not call ready in time, so its players got another lobby or none.',
    }
    return [...(count === CRASHES_IN_A_ROW ? [crashing] : []), ...(reason === 'never_ready' ? [never_ready] : [])]
  })
}

type Node = ResponseOf<typeof listNodes>['nodes'][number]

function nodeCondition({ node_id, state, seen_ts }: Node): Condition[] {
  if (state === 'away') {
    return [
      {
        ...{ key: `away ${node_id}`, event: 'node_away', severity: 'error', node_id },
        title: `The node ${node_id} is away`,
        text: seen_ts === undefined ? 'It has never reported.' : `It reported last at ${seen_ts}.`,
        hold_ms: NODE_HOLD_MS,
      },
    ]
  }
  if (state !== 'drained') return []
  return [
    {
      ...{ key: `drained ${node_id}`, event: 'node_drained', severity: 'info', node_id },
      title: `The node ${node_id} is drained`,
      text: 'It runs no lobby, and gets none.',
      hold_ms: 0,
    },
  ]
}

export function placeOf(
  scope: OverviewScope,
  namespace_id: string,
): { group_id?: string; game_id?: string; namespace_id: string } {
  const game_id = scope.namespaces.find((one) => one.namespace_id === namespace_id)?.game_id
  const group_id = scope.games.find((one) => one.game_id === game_id)?.group_id
  return {
    ...(group_id === undefined ? {} : { group_id }),
    ...(game_id === undefined ? {} : { game_id }),
    namespace_id,
  }
}
