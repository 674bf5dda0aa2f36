// Runs of the job that orders certificates, one at a time: the platform of a test runs it too, for every requested certificate.
import { sql } from 'kysely'
import { orderCertificates } from '../../src/cloud/certificates/certificates.ts'
import type { Context } from '../../src/context.ts'
import { until } from '../support/until.ts'

/** Orders what is due, after every run that the platform has begun or is about to begin. */
export async function orderDueCertificates(ctx: Context): Promise<void> {
  await until('no other run is due or under way', async () => {
    const { rows } = await sql`
      select from graphile_worker.jobs
        where task_identifier = 'order_certificates' and (locked_at is not null or run_at <= now())`.execute(ctx.db)
    return rows.length === 0
  })
  await orderCertificates(ctx)
}
