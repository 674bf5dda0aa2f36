// Statements that become true together, on a connection of their own. Where the work fails, nothing of it is there, and
// the connection is not used again.
import type { Pool, PoolClient } from 'pg'

export async function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
  begin = 'begin',
): Promise<T> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    await client.query(begin)
    const result = await work(client)
    await client.query('commit')
    return result
  } catch (error) {
    broken = error as Error
    throw error
  } finally {
    client.release(broken)
  }
}

/** All of it sees the same moment. */
export function inSnapshot<T>(pool: Pool, read: (client: PoolClient) => Promise<T>): Promise<T> {
  return inTransaction(pool, read, 'begin isolation level repeatable read read only')
}
