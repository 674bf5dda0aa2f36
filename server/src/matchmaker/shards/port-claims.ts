// The ports of lobbies over all matchmakers (law L5). A port is claimed in the statement that appends the lobby to the journal, so
// a lobby that becomes durable has its ports, and no other lobby has them. Where a claim is taken, nothing is appended: the
// command decides again. When the end of a lobby is durable, its ports become free after the quarantine, in book time. A takeover makes the
// claims of a shard what its books say, so no crash leaves a claim behind.
import type { Pool } from 'pg'
import { PORT_QUARANTINE_MS } from '../../database/edge-ports.ts'
import type { EdgePort } from '../../journal/changes.ts'
import type { Book } from '../book/state.ts'
import { roomSql } from './room-claims.ts'

export type PortClaim = Pick<EdgePort, 'transport' | 'port'> & { lobby_id: string }

/**
 * Claims the ports `$5` to `$7` at the book time `$8`, and the room `$9` to `$19`, where a row was appended. Division by zero refuses
 * the whole statement where a port is taken, or a place has no room.
 */
export function appendAndClaimSql(append_sql: string): string {
  return `
  with appended as (${append_sql} returning 1), claimed as (
    insert into port_claims (transport, port, shard, lobby_id)
    select wanted.transport, wanted.port, $1::smallint, wanted.lobby_id
    from appended, unnest($5::text[], $6::integer[], $7::uuid[]) as wanted (transport, port, lobby_id)
    on conflict (transport, port) do update set shard = excluded.shard, lobby_id = excluded.lobby_id, free_ms = null
      where port_claims.free_ms <= $8
    returning 1
  ), ${roomSql(9)}
  select 1 / (case when (select count(*) from claimed) = cardinality($6)
    and (select count(*) from place_sums) = cardinality($14) then 1 else 0 end) from appended`
}

/** PostgreSQL's code for it. */
export const CLAIM_REFUSED = '22012'

/** Ports that lobbies of other shards than `$1` have, or that are not free yet at the book time `$2`. */
export const CLAIMS_OF_OTHERS_SQL = `
  select transport, port from port_claims
  where shard <> all((select $1)::smallint[]) and (free_ms is null or free_ms > (select $2)::bigint)`

/** The lobbies have ended, by id: the book time of the end. */
export async function releaseClaims(pool: Pool, ended: ReadonlyMap<string, number>): Promise<void> {
  await pool.query({
    name: 'port-claims-release',
    text: `update port_claims set free_ms = ended.stop_ms + ${PORT_QUARANTINE_MS}
      from unnest($1::uuid[], $2::bigint[]) as ended (lobby_id, stop_ms)
      where port_claims.lobby_id = ended.lobby_id and free_ms is null`,
    values: [[...ended.keys()], [...ended.values()]],
  })
}

/** After a takeover of the shard, at the book time `now_ms`: its claims are those of its live lobbies. */
export async function replaceClaims(pool: Pool, shard: number, books: Iterable<Book>, now_ms: number): Promise<void> {
  const claims = [...books].flatMap(({ lobbies }) =>
    [...lobbies.values()].flatMap(({ stop_ms, lobby_id, edge_ports }) =>
      stop_ms === null ? edge_ports.map(({ transport, port }) => ({ transport, port, lobby_id })) : [],
    ),
  )
  await pool.query({
    name: 'port-claims-replace',
    text: `
      with ended as (
        update port_claims set free_ms = $5 where shard = $1 and free_ms is null and lobby_id <> all($4)
      )
      insert into port_claims (transport, port, shard, lobby_id)
      select transport, port, $1, lobby_id
      from unnest($2::text[], $3::integer[], $4::uuid[]) as live (transport, port, lobby_id)
      on conflict (transport, port) do nothing`,
    values: [shard, ...columnsOf(claims), now_ms + PORT_QUARANTINE_MS],
  })
}

export function columnsOf(claims: readonly PortClaim[]): [string[], number[], string[]] {
  return [
    claims.map(({ transport }) => transport),
    claims.map(({ port }) => port),
    claims.map(({ lobby_id }) => lobby_id),
  ]
}
