// Who removes stored bytes and who copies them keep out of each other's way: a backup copies what its snapshot names,
// however long that takes, and nothing of it may be removed meanwhile. The lock is PostgreSQL's own, so it reaches every
// machine of the platform and is gone in the instant in which its holder dies.
import { type Kysely, sql, type Transaction } from 'kysely'
import type { ClientBase } from 'pg'
import type { Schema } from './schema.ts'

/** Any number, but always this one. */
const LOCK_KEY = '7365882111'

/** From here on until the connection ends nothing stored is removed. Waits for a removal that is under way. */
export async function lockObjects(client: ClientBase): Promise<void> {
  await client.query('select pg_advisory_lock_shared($1)', [LOCK_KEY])
}

/** Null, and nothing has been done, while somebody holds the objects. `remove` may take its time between its queries. */
export async function unlessHeld<T>(
  db: Kysely<Schema>,
  remove: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T | null> {
  return db.transaction().execute(async (trx) => {
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(trx)
    const { rows } = await sql<{ is_free: boolean }>`
      select pg_try_advisory_xact_lock(${LOCK_KEY}::bigint) as is_free`.execute(trx)
    return rows[0]?.is_free === true ? remove(trx) : null
  })
}
