// The worker of jobs, with jobs of the test's own: no role of the platform takes them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addDomainCheck, startJobs } from '../../src/cloud/jobs.ts'
import { newId } from '../../src/ids.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

test('a job that is done when the database refuses to note it ends the worker, not the process, and runs again', async (t) => {
  const { ctx } = await startPlatform(t, { roles: 'matchmaker' })
  const ran: string[] = []
  const jobs = await startJobs(ctx, {
    async check_domain(_, domain_id) {
      ran.push(domain_id)
      if (ran.length === 1) await ctx.pool.query(REFUSE)
      else await ctx.pool.query(ALLOW)
    },
    async order_certificates() {},
    async back_up() {},
  })
  try {
    const domain_id = newId(Date.now())
    await addDomainCheck(ctx.db, domain_id, null)
    await until('the job to run again', () => ran.length === 2)
    assert.deepEqual(ran, [domain_id, domain_id])
    await until('the job to be noted as done', async () => {
      const { rows } = await ctx.pool.query('select 1 from graphile_worker.jobs')
      return rows.length === 0
    })
  } finally {
    // Before the platform closes its pool.
    await jobs.stop()
  }
})

/** As a database that goes away between the job and the note of its end. */
const REFUSE = `
  create function refuse() returns trigger language plpgsql as $$ begin raise 'not now'; end $$;
  create trigger refuse before delete on graphile_worker._private_jobs for each row execute function refuse()`
const ALLOW = 'drop trigger refuse on graphile_worker._private_jobs'
