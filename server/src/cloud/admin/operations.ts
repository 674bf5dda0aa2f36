// Jobs and settings of the platform, as the operator sees them.
import type { listAdminJobs, listAdminSettings, ResponseOf } from '@musterhost/contract'
import { SETTING_NAMES, SETTINGS, type Setting } from '../../config/settings.ts'
import type { Context } from '../../context.ts'
import { timestamp } from '../times.ts'

/** Jobs that are read. */
const JOBS_MAX = 500
const TASKS: ReadonlySet<string> = new Set(['check_domain', 'order_certificates', 'back_up'])

type Jobs = ResponseOf<typeof listAdminJobs>['jobs']
type JobRow = {
  role: string
  job: string
  end_ts: Date | null
  duration_ms: number | null
  failure: string | null
  success_ts: Date | null
}
type TaskRow = { task: string; waiting_count: number; next_ts: Date | null; last_error: string | null }

export async function listAllJobs({ pool }: Context): Promise<{ jobs: Jobs }> {
  const { rows: runs } = await pool.query<JobRow>(
    `select role, job, end_ts, duration_ms, failure, success_ts from job_runs order by role, job limit ${JOBS_MAX}`,
  )
  const { rows: tasks } = await pool.query<TaskRow>(
    `select task_identifier as task, count(*)::integer as waiting_count, min(run_at) as next_ts,
        max(last_error) as last_error
      from graphile_worker.jobs group by task_identifier order by task_identifier limit ${JOBS_MAX}`,
  )
  const planned = new Map(tasks.map((task) => [task.task, task]))
  const is_task = (name: string): boolean => TASKS.has(name)
  const unseen = tasks.filter(({ task }) => !runs.some(({ job }) => job === task))
  const rows: JobRow[] = [
    ...runs,
    ...unseen.map(({ task, last_error }) => ({
      ...{ role: 'api', job: task, end_ts: null, duration_ms: null, success_ts: null },
      failure: last_error?.split('\n')[0] ?? null,
    })),
  ]
  const jobs = rows.map(({ role, job, end_ts, duration_ms, failure, success_ts }): Jobs[number] => {
    const task = planned.get(job)
    return {
      name: job,
      role,
      kind: is_task(job) || task !== undefined ? 'task' : 'sweep',
      ...(end_ts === null ? {} : { last_run_ts: timestamp(end_ts) }),
      ...(duration_ms === null ? {} : { last_duration_ms: duration_ms }),
      ...(failure === null ? {} : { failure }),
      ...(success_ts === null ? {} : { last_success_ts: timestamp(success_ts) }),
      ...(is_task(job) ? { waiting_count: task?.waiting_count ?? 0 } : {}),
      ...(task?.next_ts ? { next_run_ts: timestamp(task.next_ts) } : {}),
    }
  })
  return { jobs: jobs.toSorted((one, other) => Number('failure' in other) - Number('failure' in one)) }
}

export function listAllSettings({ config }: Context): ResponseOf<typeof listAdminSettings> {
  const settings = SETTING_NAMES.map((name) => {
    const setting: Setting = SETTINGS[name]
    const given = config.given_settings[name]
    const is_secret = setting.is_secret ?? false
    const standard = setting.default === null ? (setting.default_doc ?? '') : String(setting.default)
    const value = given ?? (setting.default === null ? '' : String(setting.default))
    return {
      name,
      source: name in config.given_settings ? ('environment' as const) : ('default' as const),
      ...(is_secret || value === '' ? {} : { value }),
      ...(standard === '' ? {} : { default: standard }),
      is_secret,
      description: setting.doc,
    }
  })
  return { settings }
}
