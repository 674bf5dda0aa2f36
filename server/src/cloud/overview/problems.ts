// What is wrong in the groups and games of an overview. One query reads each kind of problem, over all namespaces.
import type { ErrorCode, Problem } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { QUOTAS, usageOfGroups } from '../quotas.ts'
import { timestamp } from '../times.ts'
import type { NowCount } from './counts.ts'
import { crashProblems, groupOf } from './crashes.ts'
import type { OverviewScope } from './scope.ts'

/** Rows of each kind. */
const ROWS_MAX = 50
/** A certificate that has so little time left, and whose renewal has failed or is overdue, is a problem. */
const CERTIFICATE_LEFT_MS = 14 * 86_400_000
const RENEWAL_OVERDUE_MS = 86_400_000
/** Failed orders of a first certificate. */
const ORDER_FAILURES_MIN = 2
/** Requests that were refused. */
const REFUSALS_WINDOW_MS = 600_000
/** Share of a quota or limit that is nearly all. */
const NEAR = 0.8

export async function gameProblems(
  ctx: Context,
  scope: OverviewScope,
  counts: ReadonlyMap<string, NowCount>,
): Promise<Problem[]> {
  const kinds = await Promise.all([
    crashProblems(ctx, scope),
    captchaProblems(ctx, scope),
    domainProblems(ctx, scope),
    certificateProblems(ctx, scope),
    quotaProblems(ctx, scope),
    pausedTargetProblems(ctx, scope.group_ids),
  ])
  return [...kinds.flat(), ...stalledProblems(scope, counts), ...lobbyLimitProblems(scope, counts)]
}

function stalledProblems(scope: OverviewScope, counts: ReadonlyMap<string, NowCount>): Problem[] {
  return scope.namespaces.flatMap(({ namespace_id, game_id, name_id }) => {
    const count = counts.get(namespace_id)
    if (count === undefined || count.stalled_count === 0) return []
    const lobbies = count.stalled_count === 1 ? '1 lobby' : `${count.stalled_count} lobbies`
    return {
      kind: 'lobbies_stalled',
      severity: 'error',
      title: `${lobbies} stalled in ${name_id}`,
      text: 'Their servers do not respond, so nobody can join them.',
      ...groupOf(scope, game_id),
      ...{ game_id, namespace_id, version_id: count.stalled_version_id, count: count.stalled_count },
      remedy: { kind: 'open_page', page: 'lobbies', game_id, namespace_id },
    } satisfies Problem
  })
}

function lobbyLimitProblems(scope: OverviewScope, counts: ReadonlyMap<string, NowCount>): Problem[] {
  return scope.namespaces.flatMap(({ namespace_id, game_id, name_id, lobby_count_max }) => {
    const lobby_count = counts.get(namespace_id)?.lobby_count ?? 0
    if (lobby_count === 0 || lobby_count < lobby_count_max * NEAR) return []
    return {
      kind: 'lobby_limit_near',
      severity: lobby_count >= lobby_count_max ? 'error' : 'warning',
      title: `${name_id} has ${lobby_count} of ${lobby_count_max} lobbies`,
      text: 'At the limit, requests for a seat in a new lobby are refused.',
      ...groupOf(scope, game_id),
      ...{ game_id, namespace_id, count: lobby_count, count_max: lobby_count_max },
      remedy: { kind: 'open_page', page: 'limits', game_id, namespace_id },
    } satisfies Problem
  })
}

export type RefusedRequests = {
  namespace_id: string
  code: ErrorCode
  count: number
  last_ts: Date
  last_ray_id: string
}

/** Requests of the last ten minutes that were refused with one of these codes. */
export async function countRefusals(
  { pool, now }: Context,
  namespace_ids: readonly string[],
  codes: readonly ErrorCode[],
): Promise<RefusedRequests[]> {
  const { rows } = await pool.query<RefusedRequests>(
    `select namespace_id, code, count(*)::integer as count, max(create_ts) as last_ts,
        (array_agg(ray_id order by create_ts desc))[1] as last_ray_id
      from explanations where namespace_id = any($1) and create_ts >= $2 and code = any($3)
      group by namespace_id, code order by count desc limit ${ROWS_MAX}`,
    [namespace_ids, new Date(now() - REFUSALS_WINDOW_MS), codes],
  )
  return rows
}

async function captchaProblems(ctx: Context, scope: OverviewScope): Promise<Problem[]> {
  const rows = await countRefusals(ctx, scope.namespace_ids, ['CAPTCHA_PROVIDER_FAILED'])
  return rows.map(({ namespace_id, count, last_ts }) => {
    const { game_id, name_id } = namespaceOf(scope, namespace_id)
    return {
      kind: 'captcha_provider_failing',
      severity: 'error',
      title: `Captchas cannot be checked in ${name_id}`,
      text: `The captcha provider failed for ${count === 1 ? 'a request' : `${count} requests`} in the last ten minutes.`,
      ...groupOf(scope, game_id),
      ...{ game_id, namespace_id, count, since_ts: timestamp(last_ts) },
      remedy: { kind: 'open_page', page: 'rays', game_id, namespace_id },
    }
  })
}

async function domainProblems({ pool }: Context, scope: OverviewScope): Promise<Problem[]> {
  const { rows } = await pool.query<{
    namespace_id: string
    domain: string
    verification_status: 'pending' | 'failed'
    verification_errors: string[]
    create_ts: Date
  }>(
    `select namespace_id, domain, verification_status, verification_errors, create_ts from domains
      where namespace_id = any($1) and verification_status <> 'active'
      order by create_ts desc, domain_id limit ${ROWS_MAX}`,
    [scope.namespace_ids],
  )
  return rows.map(({ namespace_id, domain, verification_status, verification_errors, create_ts }) => {
    const { game_id } = namespaceOf(scope, namespace_id)
    return {
      kind: 'domain_unproven',
      severity: verification_status === 'failed' ? 'error' : 'warning',
      title: `${domain} is not proven`,
      text: verification_errors[0] ?? 'No check has found its DNS record yet.',
      ...groupOf(scope, game_id),
      ...{ game_id, namespace_id, domain, since_ts: timestamp(create_ts) },
      remedy: { kind: 'prove_domain', game_id, namespace_id, domain },
    }
  })
}

/** `first`: number of the parameter that is the first of `expiryTimes`. */
function isExpiring(first: number): string {
  return `(expire_ts < $${first + 2} or (expire_ts < $${first} and (error is not null or certificates.next_ts < $${first + 1}))
    or (chain is null and certificates.failure_count >= ${ORDER_FAILURES_MIN}))`
}

function expiryTimes(now_ms: number): Date[] {
  return [now_ms + CERTIFICATE_LEFT_MS, now_ms - RENEWAL_OVERDUE_MS, now_ms].map((ms) => new Date(ms))
}

async function certificateProblems({ pool, now }: Context, scope: OverviewScope): Promise<Problem[]> {
  const { rows } = await pool.query<{
    namespace_id: string
    host: string
    error: string | null
    expire_ts: Date | null
  }>(
    `select domains.namespace_id, host, error, expire_ts from domains join certificates on host = domain
      where namespace_id = any($1) and verification_status = 'active'
        and ${isExpiring(2)}
      order by expire_ts nulls first, host limit ${ROWS_MAX}`,
    [scope.namespace_ids, ...expiryTimes(now())],
  )
  return rows.map(({ namespace_id, ...certificate }) => {
    const { game_id } = namespaceOf(scope, namespace_id)
    return {
      ...certificateProblem(certificate, now()),
      ...groupOf(scope, game_id),
      ...{ game_id, namespace_id },
      remedy: { kind: 'open_page', page: 'domains', game_id, namespace_id },
    }
  })
}

/** For administrators: those of no custom domain, such as the platform's own. */
export async function platformCertificateProblems({ pool, now }: Context): Promise<Problem[]> {
  const { rows } = await pool.query<{ host: string; error: string | null; expire_ts: Date | null }>(
    `select host, error, expire_ts from certificates
      where ${isExpiring(1)}
        and not exists (select from domains where domain = host and verification_status = 'active')
      order by expire_ts nulls first, host limit ${ROWS_MAX}`,
    expiryTimes(now()),
  )
  return rows.map((row) => ({ ...certificateProblem(row, now()), remedy: { kind: 'open_page', page: 'checks' } }))
}

function certificateProblem(
  { host, error, expire_ts }: { host: string; error: string | null; expire_ts: Date | null },
  now_ms: number,
): Omit<Problem, 'remedy'> {
  const is_over = expire_ts === null || expire_ts.getTime() <= now_ms
  return {
    kind: 'certificate_expiring',
    severity: is_over ? 'error' : 'warning',
    title:
      expire_ts === null
        ? `${host} has no certificate`
        : `The certificate of ${host} ${is_over ? 'has expired' : 'expires soon'}`,
    text: error ?? 'It has not been renewed yet.',
    domain: host,
    ...(expire_ts === null ? {} : { expire_ts: timestamp(expire_ts) }),
  }
}

async function quotaProblems(ctx: Context, scope: OverviewScope): Promise<Problem[]> {
  const usage = await usageOfGroups(ctx, scope.group_ids)
  return scope.groups.flatMap(({ group_id, display_name }) =>
    QUOTAS.flatMap((quota): Problem[] => {
      const [count, count_max] = [usage.get(group_id)?.[quota] ?? 0, ctx.config.quotas[quota]]
      if (count_max === null || count_max === 0 || count < count_max * NEAR) return []
      return [
        {
          kind: 'quota_near',
          severity: count >= count_max ? 'error' : 'warning',
          title: `${display_name} uses ${count} of ${count_max} ${quota}`,
          text: 'At the quota, new ones are refused. Delete some, or ask the operator for a higher quota.',
          ...{ group_id, quota, count, count_max },
          remedy: { kind: 'open_page', page: 'quotas' },
        },
      ]
    }),
  )
}

/** `group_ids`: null: targets of the platform. */
export async function pausedTargetProblems({ pool }: Context, group_ids: readonly string[] | null): Promise<Problem[]> {
  const { rows } = await pool.query<{
    name: string
    group_id: string | null
    game_id: string | null
    paused_ts: Date
    pause_reason: string
  }>(
    `select name, coalesce(t.group_id, developer_group_id) as group_id, t.game_id, paused_ts, pause_reason
      from notice_targets t left join games on games.game_id = t.game_id
      where pause_reason is not null and case when $1::uuid[] is null then t.group_id is null and t.game_id is null
        else coalesce(t.group_id, developer_group_id) = any($1) end
      order by paused_ts desc limit ${ROWS_MAX}`,
    [group_ids],
  )
  return rows.map(({ name, group_id, game_id, paused_ts, pause_reason }) => ({
    kind: 'notice_target_paused',
    severity: 'warning',
    title: `The target ${name} of notices is paused`,
    text: pause_reason,
    ...(group_id === null ? {} : { group_id }),
    ...(game_id === null ? {} : { game_id }),
    since_ts: timestamp(paused_ts),
    remedy: { kind: 'open_page', page: 'notices', ...(game_id === null ? {} : { game_id }) },
  }))
}

function namespaceOf(scope: OverviewScope, namespace_id: string): OverviewScope['namespaces'][number] {
  return scope.namespaces.find((one) => one.namespace_id === namespace_id)!
}
