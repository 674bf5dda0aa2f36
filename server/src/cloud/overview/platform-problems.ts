// What is wrong with the platform itself, for administrators: roles that do not run, and disks that are nearly full.
import type { Problem } from '@muster/contract'
import type { Context } from '../../context.ts'
import { platformCertificateProblems } from './problems.ts'

/** A matchmaker renews its lease, and a runner its report, every few seconds. By the database's clock. */
const FRESH = '20 seconds'
/** Runners that are read. */
const RUNNERS_MAX = 1_000
/** Below this many times the minimum, a disk is low; below the minimum itself, its regions open no lobbies. */
const LOW_FACTOR = 2

const BYTES_PER_GB = 1_000_000_000

export async function platformProblems(ctx: Context): Promise<Problem[]> {
  const [roles, certificates] = await Promise.all([roleProblems(ctx), platformCertificateProblems(ctx)])
  return [...roles, ...certificates]
}

type Runner = { runner_id: string; regions: string[]; disk_free_bytes: number }

async function roleProblems({ pool, config }: Context): Promise<Problem[]> {
  const { rows } = await pool.query<{ has_matchmaker: boolean; has_edge: boolean; runners: Runner[] }>(
    `select exists (select from matchmaker_lease where renew_ts > now() - interval '${FRESH}') as has_matchmaker,
        exists (select from edges where silent_ts is null) as has_edge,
        (select coalesce(json_agg(runner), '[]') from (
          select runner_id, regions, disk_free_bytes from runners where ts > now() - interval '${FRESH}'
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
  if (disk_free_bytes >= bytes_min * LOW_FACTOR) return []
  const is_closed = disk_free_bytes < bytes_min
  const free = `${(disk_free_bytes / BYTES_PER_GB).toFixed(1)} GB are free`
  const name = regions.join(', ')
  return [
    {
      kind: 'disk_low',
      severity: is_closed ? 'error' : 'warning',
      title: `The disk of ${name} is nearly full`,
      text: is_closed
        ? `${free}, so no lobby starts there.`
        : `${free}. Below ${(bytes_min / BYTES_PER_GB).toFixed(1)} GB, no lobby starts there.`,
      role: 'runner',
      region: name,
      ...{ count: disk_free_bytes, count_max: bytes_min },
      remedy: { kind: 'open_page', page: 'checks' },
    },
  ]
}
