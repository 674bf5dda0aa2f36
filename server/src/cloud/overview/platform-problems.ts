// What is wrong with the platform itself, for administrators: roles that do not run, disks that are nearly full, and more.
import type { Problem } from '@musterhost/contract'
import { unnamedProxies, unnamedProxySentence } from '../../addresses/unnamed-proxies.ts'
import type { Context } from '../../context.ts'
import { DISK_LOW_FACTOR } from '../../observe/disk.ts'
import { isFreshSql } from '../nodes/freshness.ts'
import { timestamp } from '../times.ts'
import { pausedTargetProblems, platformCertificateProblems } from './problems.ts'

/** Runners that are read. */
const RUNNERS_MAX = 1_000

/** A platform with data older than this should have a backup that is newer. */
const BACKUP_AGE_MS_MAX = 7 * 86_400_000
/** Failing jobs that are read. */
const JOBS_MAX = 20

const NOT_BACKED_UP = 'No backup of the schedule succeeded. The page of backups says why.'

const BYTES_PER_GB = 1_000_000_000

export async function platformProblems(ctx: Context): Promise<Problem[]> {
  const kinds = [
    ...[roleProblems(ctx), platformCertificateProblems(ctx), backupProblems(ctx), jobProblems(ctx)],
    ...[proxyProblems(ctx), pausedTargetProblems(ctx, null)],
  ]
  return (await Promise.all(kinds)).flat()
}

type Runner = { runner_id: string; regions: string[]; disk_free_bytes: number }

async function roleProblems({ pool, config }: Context): Promise<Problem[]> {
  const { rows } = await pool.query<{ has_matchmaker: boolean; has_edge: boolean; runners: Runner[] }>(
    `select exists (select from matchmakers where ${isFreshSql('seen_ts')}) as has_matchmaker,
        exists (select from edges where silent_ts is null) as has_edge,
        (select coalesce(json_agg(runner), '[]') from (
          select runner_id, regions, disk_free_bytes from runners where ${isFreshSql('ts')}
          order by runner_id limit ${RUNNERS_MAX}
        ) as runner) as runners`,
  )
  const { has_matchmaker, has_edge, runners } = rows[0]!
  const served = new Set(runners.flatMap(({ regions }) => regions))
  const without = config.regions.filter(({ name }) => !served.has(name))
  return [
    ...(has_matchmaker ? [] : [away('matchmaker', 'No matchmaker runs, so no player receives a seat.')]),
    ...(has_edge ? [] : [away('edge', 'No edge reports, so players cannot reach sites and lobbies.')]),
    ...without.map(({ name }) => ({
      ...away('runner', `No runner reports for region ${name}, so no lobby starts there.`),
      region: name,
    })),
    ...runners.flatMap((runner) => diskProblems(runner, config.lobbies.disk_free_bytes_min)),
  ]
}

function away(role: string, text: string): Problem {
  return {
    kind: 'role_away',
    severity: 'error',
    title: `The ${role} does not run`,
    text,
    role,
    remedy: { kind: 'open_page', page: 'processes' },
  }
}

function diskProblems({ regions, disk_free_bytes }: Runner, bytes_min: number): Problem[] {
  if (disk_free_bytes >= bytes_min * DISK_LOW_FACTOR) return []
  const is_closed = disk_free_bytes < bytes_min
  const [free, min] = [disk_free_bytes, bytes_min].map((bytes) => `${(bytes / BYTES_PER_GB).toFixed(1)} GB`)
  const name = regions.join(', ')
  return [
    {
      kind: 'disk_low',
      severity: is_closed ? 'error' : 'warning',
      title: `The disk of the runner in ${name} is nearly full`,
      text: is_closed
        ? `${free} are free. No lobby starts there until ${min} are free, or MUSTER_LOBBY_DISK_FREE_MB_MIN is lower.`
        : `${free} are free. Below ${min}, no lobby starts there.`,
      role: 'runner',
      region: name,
      ...{ count: disk_free_bytes, count_max: bytes_min },
      remedy: { kind: 'open_page', page: 'checks' },
    },
  ]
}

async function backupProblems({ pool, now, config }: Context): Promise<Problem[]> {
  const { rows } = await pool.query<{
    first_ts: Date | null
    backup_ts: Date | null
    verify_ts: Date | null
    finding_count: number | null
  }>(
    `select (select min(create_ts) from games) as first_ts, (select max(create_ts) from backups) as backup_ts,
        last.end_ts as verify_ts, case when not last.is_sound then last.finding_count end as finding_count
      from (select) as one left join (
        select end_ts, is_sound, finding_count from verifications order by end_ts desc limit 1
      ) as last on true`,
  )
  const { first_ts, backup_ts, verify_ts, finding_count } = rows[0]!
  const since_ms = now() - BACKUP_AGE_MS_MAX
  const is_old = first_ts !== null && first_ts.getTime() < since_ms && (backup_ts?.getTime() ?? 0) < since_ms
  const remedy = { kind: 'open_page', page: 'backups' } as const
  return [
    ...(is_old
      ? [
          {
            kind: 'backup_missing',
            severity: 'warning',
            title: backup_ts === null ? 'There is no backup' : 'The last backup is old',
            text:
              config.backups === null
                ? 'Set MUSTER_BACKUP_TO, and the platform is backed up every day.'
                : NOT_BACKED_UP,
            ...(backup_ts === null ? {} : { since_ts: timestamp(backup_ts) }),
            remedy,
          } satisfies Problem,
        ]
      : []),
    ...(finding_count === null
      ? []
      : [
          {
            kind: 'verification_failed',
            severity: 'error',
            title: 'The last verification found damage',
            text: `\`muster verify\` found ${finding_count === 1 ? 'one thing' : `${finding_count} things`} wrong.`,
            count: finding_count,
            since_ts: timestamp(verify_ts!),
            remedy,
          } satisfies Problem,
        ]),
  ]
}

async function jobProblems({ pool }: Context): Promise<Problem[]> {
  const { rows } = await pool.query<{ role: string; job: string; failure: string; end_ts: Date }>(
    `select role, job, failure, end_ts from job_runs where failure is not null order by end_ts desc limit ${JOBS_MAX}`,
  )
  return rows.map(({ role, job, failure, end_ts }) => {
    const common = { text: failure, role, since_ts: timestamp(end_ts) }
    if (job === 'back_up') {
      const remedy = { kind: 'open_page', page: 'backups' } as const
      return { ...common, kind: 'backup_failed', severity: 'error', title: 'The last backup failed', remedy }
    }
    const remedy = { kind: 'open_page', page: 'jobs' } as const
    return { ...common, kind: 'job_failing', severity: 'warning', title: `The job ${job} failed`, remedy }
  })
}

async function proxyProblems({ pool }: Context): Promise<Problem[]> {
  return (await unnamedProxies(pool)).map(({ address, ts }) => ({
    kind: 'unnamed_proxy',
    severity: 'warning',
    title: `${address} seems to be a proxy that no setting names`,
    text: unnamedProxySentence(address),
    ...{ role: 'edge', since_ts: timestamp(ts) },
    remedy: { kind: 'open_page', page: 'checks' },
  }))
}
