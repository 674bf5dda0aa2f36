// Adds the bytes that this edge has carried for each lobby, and the connections of addresses without a seat that it has refused,
// to the counts in the database, every five seconds. The runner reads them there for the metrics and logs of its lobbies. What a failed report had is not reported again, so no byte is counted twice.
import type { Context } from '../../context.ts'
import { watchEvery } from '../../database/poller.ts'
import { TRAFFIC_REMOVE_EVERY_MS, TRAFFIC_REPORT_EVERY_MS } from '../limits.ts'
import type { LobbyConnections } from './lobby-connections.ts'

/** How long the count of a lobby without traffic stays; the next byte begins a new one. */
const SILENT_KEPT = '1 hour'
/** Rows that one report removes. */
const REMOVED_MAX = 1_000

/** In the order of the ids: two edges that report the same lobbies never wait for each other in a circle. */
const ADD_SQL = `
  insert into lobby_traffic (lobby_id, bytes_in, bytes_out, refused_count, refused_client)
  select lobby_id, bytes_in, bytes_out, refused_count, refused_client
  from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
    as carried (lobby_id, bytes_in, bytes_out, refused_count, refused_client)
  order by lobby_id
  on conflict (lobby_id) do update set
    bytes_in = lobby_traffic.bytes_in + excluded.bytes_in, bytes_out = lobby_traffic.bytes_out + excluded.bytes_out, ts = now(),
    refused_count = lobby_traffic.refused_count + excluded.refused_count,
    refused_client = coalesce(excluded.refused_client, lobby_traffic.refused_client)`

const REMOVE_SQL = `
  delete from lobby_traffic where lobby_id in (
    select lobby_id from lobby_traffic where ts < now() - interval '${SILENT_KEPT}'
    order by lobby_id limit ${REMOVED_MAX} for update skip locked
  )`

export function reportTraffic(ctx: Context, connections: LobbyConnections): { close: () => Promise<void> } {
  let remove_ms = Number.NEGATIVE_INFINITY

  async function report(): Promise<void> {
    const carried = connections.takeTraffic()
    if (carried.length > 0) {
      await ctx.pool.query({
        name: 'edge-traffic',
        text: ADD_SQL,
        values: [
          carried.map(({ lobby_id }) => lobby_id),
          carried.map(({ bytes_in }) => bytes_in),
          carried.map(({ bytes_out }) => bytes_out),
          carried.map(({ refused_count }) => refused_count),
          carried.map(({ refused_client }) => refused_client),
        ],
      })
    }
    if (ctx.elapsed() < remove_ms) return
    await ctx.pool.query({ name: 'edge-traffic-old', text: REMOVE_SQL })
    remove_ms = ctx.elapsed() + TRAFFIC_REMOVE_EVERY_MS
  }
  return watchEvery(ctx, TRAFFIC_REPORT_EVERY_MS, {
    run: report,
    failure: 'report of the traffic of lobbies failed; it is not counted',
  })
}
