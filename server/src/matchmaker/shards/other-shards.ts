// What lobbies of other shards than those of this process use: ports, and room of nodes and regions. One statement reads both,
// because each process does it every second. Its parameters are hidden in subqueries: PostgreSQL would plan it anew for each
// list of shards otherwise, which costs more than to run it.
import type { Pool } from 'pg'
import { CLAIMS_OF_OTHERS_SQL, type PortClaim } from './port-claims.ts'
import type { LobbyUse } from './room-claims.ts'
import { USES_OF_OTHERS_SQL } from './room-claims.ts'

export type OtherShards = {
  claims: readonly Omit<PortClaim, 'lobby_id'>[]
  uses: readonly (LobbyUse & { lobby_count: number })[]
}

export async function readOtherShards(pool: Pool, shards: readonly number[], now_ms: number): Promise<OtherShards> {
  const { rows } = await pool.query<OtherShards>({
    name: 'other-shards',
    text: `select (select coalesce(json_agg(claim), '[]') from (${CLAIMS_OF_OTHERS_SQL}) as claim) as claims,
      (select coalesce(json_agg(of_place), '[]') from (${USES_OF_OTHERS_SQL}) as of_place) as uses`,
    values: [shards, now_ms],
  })
  return rows[0]!
}
