// The jobs that are planned. Their tables are graphile-worker's own and change with it, so they are not copied: what
// each job is asked to do is, and it is planned again through the queue's public function. Which process was at it, and
// how often it had failed, is not carried over.
import { Logger, runMigrations } from 'graphile-worker'
import type { ClientBase } from 'pg'
import type { Logger as Log } from 'pino'
import { connect } from '../database/connect.ts'
import { dump, load } from './rows.ts'

const COLUMNS = ['task', 'payload', 'queue', 'run_at', 'max_attempts', 'job_key', 'priority', 'flags']
const LANDING = { name: 'muster_restored_jobs', columns: COLUMNS }

/** Jobs that have used all their attempts stay behind. */
const PLANNED = `
  select t.identifier as task, j.payload, q.queue_name as queue, j.run_at, j.max_attempts, j.key as job_key, j.priority,
    (select array_agg(flag order by flag) from jsonb_object_keys(j.flags) as flag) as flags
  from graphile_worker._private_jobs j
  join graphile_worker._private_tasks t on t.id = j.task_id
  left join graphile_worker._private_job_queues q on q.id = j.job_queue_id
  where j.attempts < j.max_attempts
  order by j.id`

/** Before the api role has run for the first time there is no queue. */
export async function dumpJobs(
  client: ClientBase,
  write: (body: AsyncIterable<Uint8Array>) => Promise<unknown>,
): Promise<number> {
  const { rows } = await client.query<{ is_there: boolean }>(
    "select to_regclass('graphile_worker._private_jobs') is not null as is_there",
  )
  return dump(client, rows[0]?.is_there ? PLANNED : `select 1 where false`, write)
}

/** Makes the queue's tables. Not within a transaction. */
export async function makeQueue(url: string, log: Log): Promise<void> {
  const logger = new Logger(() => (level, message) => {
    if (level === 'error' || level === 'warning') log.warn({ worker: message }, 'the queue of jobs')
  })
  const connection = connect({ url, application_name: 'muster backup', connections_max: 1 })
  try {
    await runMigrations({ pgPool: connection.pool, logger })
  } finally {
    await connection.close()
  }
}

/** Runs within the caller's transaction. Returns how many jobs were planned. */
export async function loadJobs(client: ClientBase, path: string): Promise<number> {
  await client.query(
    `create temporary table ${LANDING.name} (task text, payload json, queue text, run_at timestamptz,
      max_attempts integer, job_key text, priority integer, flags text[]) on commit drop`,
  )
  await load(client, LANDING, path)
  const { rowCount } = await client.query(
    `select graphile_worker.add_job(task, payload, queue, run_at, max_attempts, job_key, priority, flags)
      from ${LANDING.name}`,
  )
  return rowCount ?? 0
}
