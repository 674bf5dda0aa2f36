// The lease says which matchmaker serves, so that a standby waits instead of deposing a working writer. Safety does not
// depend on it: that is the fence (fence.ts).
import type { Pool } from 'pg'

const LEASE_RENEW_MS = 1_000
/** A writer that has not renewed for this long counts as dead. */
const LEASE_STALE_S = 5

/**
 * Takes or renews the lease. Returns whether this process has it. A process that has just started takes over at once from an
 * earlier process of the same node (`is_restart`); any other process waits until the lease is stale.
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
 * Calls `renew` every LEASE_RENEW_MS, but not while an earlier call is still running: missed renewals must not pile up
 * behind a call that hangs in the database. `renew` never rejects. Returns a function that ends it.
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

/** After an orderly stop the next writer can start at once. */
export async function releaseLease(pool: Pool, writer: string): Promise<void> {
  await pool.query('delete from matchmaker_lease where writer = $1', [writer])
}
