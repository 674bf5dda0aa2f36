// The lease says which matchmaker to ask, so that a standby waits instead of deposing a living writer. Safety does not
// rest on it: that is the fence's.
import type { Pool } from 'pg'

const LEASE_RENEW_MS = 1_000
/** A writer that has not renewed for this long is taken for dead. */
const LEASE_STALE_S = 5

/**
 * Takes or renews the lease; answers whether it is ours. A process that has just started takes over at once from an
 * earlier process of the same node (`is_restart`); everybody else waits until the lease is stale.
 */
export async function holdLease(
  pool: Pool,
  holder: { node_id: string; writer: string; is_restart: boolean },
): Promise<boolean> {
  const { rowCount } = await pool.query({
    name: 'lease-hold',
    text: `insert into matchmaker_lease (singleton, node_id, writer, renew_ts) values (true, $1, $2, now())
      on conflict (singleton) do update set node_id = $1, writer = $2, renew_ts = now()
      where matchmaker_lease.writer = $2
        or ($3 and matchmaker_lease.node_id = $1)
        or matchmaker_lease.renew_ts < now() - make_interval(secs => $4)`,
    values: [holder.node_id, holder.writer, holder.is_restart, LEASE_STALE_S],
  })
  return rowCount === 1
}

/**
 * Calls `renew` every LEASE_RENEW_MS, but never while a call before is still under way: what hangs in the database must
 * not be followed by all the renewals that were due meanwhile. `renew` never rejects. Answers how to end it.
 */
export function keepRenewing(renew: () => Promise<void>): () => void {
  let is_renewing = false
  const timer = setInterval(() => {
    if (is_renewing) return
    is_renewing = true
    void renew().finally(() => {
      is_renewing = false
    })
  }, LEASE_RENEW_MS)
  return () => clearInterval(timer)
}

/** A writer that stops in good order lets the next one start at once. */
export async function releaseLease(pool: Pool, writer: string): Promise<void> {
  await pool.query('delete from matchmaker_lease where writer = $1', [writer])
}
