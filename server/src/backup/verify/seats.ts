// Verifies the laws of seats from outside, by counting, without the matchmaker's book. The tables reflect the journal up to
// one of its rows; the rows after it are replayed over them. A lobby has no more players than it holds. A seat is consumed
// once and ends once. A namespace has no more lobbies, and a client no more players, than allowed.
import type { ClientBase } from 'pg'
import type { Change } from '../../journal/changes.ts'
import { decodePage } from '../../journal/pages.ts'
import { type BackupCheck, counted } from '../report.ts'

/** Journal rows read at once. */
const PAGE_ROWS_MAX = 1_000
/** Findings and remarks that are kept. */
const TOLD_MAX = 1_000

type Lobby = {
  namespace_id: string
  players_max: number
  player_count: number
  spectators_max: number
  spectator_count: number
}
type Seat = { lobby_id: string; client: string; is_connected: boolean; is_spectator: boolean }
/** What lives: lobbies that are not stopped, players who have not left. */
type Seats = { lobbies: Map<string, Lobby>; seats: Map<string, Seat> }

/** Within a snapshot of the caller's. */
export async function checkSeats(client: ClientBase): Promise<BackupCheck> {
  const findings = await brokenRows(client)
  const state = await readSeats(client)
  const row_count = await replay(client, state, findings)
  const remarks = await exceededLimits(client, state)
  const looked_at = [
    `${counted(state.seats.size, 'seat')} in ${counted(state.lobbies.size, 'lobby', 'lobbies')}`,
    `${counted(row_count, 'journal row')} ahead of the tables`,
  ]
  return { name: 'seats', looked_at: looked_at.join(', '), findings: findings.slice(0, TOLD_MAX), remarks }
}

/** What the tables themselves get wrong, a sentence a row. */
async function brokenRows(client: ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ finding: string }>(
    `select format('lobby %s says that it has %s players, and has %s', l.lobby_id, l.player_count, count(p.player_id)) as finding
      from lobbies l left join players p on p.lobby_id = l.lobby_id and p.remove_ts is null and not p.is_spectator
      where l.stop_ts is null group by l.lobby_id having l.player_count <> count(p.player_id)
    union all
    select format('lobby %s has %s players, and holds %s', l.lobby_id, count(p.player_id),
        greatest(max_players_normal, max_players_direct, max_players_party))
      from lobbies l join players p on p.lobby_id = l.lobby_id and p.remove_ts is null and not p.is_spectator
      where l.stop_ts is null group by l.lobby_id
      having count(p.player_id) > greatest(max_players_normal, max_players_direct, max_players_party)
    union all
    select format('lobby %s has %s spectators, and holds %s', l.lobby_id, count(p.player_id), max_spectators)
      from lobbies l join players p on p.lobby_id = l.lobby_id and p.remove_ts is null and p.is_spectator
      where l.stop_ts is null group by l.lobby_id having count(p.player_id) > max_spectators
    union all
    select format('player %s has a seat in lobby %s, which %s', p.player_id, p.lobby_id,
        case when l.lobby_id is null then 'is not there' else 'has stopped' end)
      from players p left join lobbies l on l.lobby_id = p.lobby_id
      where p.remove_ts is null and (l.lobby_id is null or l.stop_ts is not null)
    union all
    select format('player %s left as %s, and %s', player_id, remove_reason,
        case when connect_ts is null then 'never connected' else 'had connected' end)
      from players
      where (remove_reason in ('expired', 'unanswered') and connect_ts is not null)
        or (remove_reason = 'too_long' and connect_ts is null)
    union all
    select format('player %s connected or left before he came', player_id)
      from players where connect_ts < create_ts or remove_ts < greatest(create_ts, connect_ts)
    union all
    select format('the journal of shard %s has %s rows from %s to %s', shard, count(*), min(seq), max(seq))
      from journal group by shard having count(*) <> max(seq) - min(seq) + 1
    union all
    select format('the tables of shard %s reflect row %s, and its journal has the rows %s to %s', s.shard,
        s.projected_seq, min(j.seq), max(j.seq))
      from shards s join journal j on j.shard = s.shard group by s.shard
      having s.projected_seq > max(j.seq) or s.projected_seq < min(j.seq) - 1
    limit ${TOLD_MAX}`,
  )
  return rows.map(({ finding }) => finding)
}

async function readSeats(client: ClientBase): Promise<Seats> {
  const state: Seats = { lobbies: new Map(), seats: new Map() }
  const lobbies = await client.query<{
    lobby_id: string
    namespace_id: string
    players_max: number
    spectators_max: number
  }>(
    `select lobby_id, namespace_id, greatest(max_players_normal, max_players_direct, max_players_party) as players_max,
        max_spectators as spectators_max
      from lobbies where stop_ts is null`,
  )
  for (const { lobby_id, ...lobby } of lobbies.rows) {
    state.lobbies.set(lobby_id, { ...lobby, player_count: 0, spectator_count: 0 })
  }
  const players = await client.query<{ player_id: string } & Seat>(
    `select player_id, lobby_id, client, connect_ts is not null as is_connected, is_spectator
      from players where remove_ts is null`,
  )
  for (const { player_id, ...seat } of players.rows) addSeat(state, player_id, seat)
  return state
}

function addSeat(state: Seats, player_id: string, seat: Seat): Lobby | undefined {
  const lobby = state.lobbies.get(seat.lobby_id)
  // A seat without a lobby was reported before.
  if (lobby === undefined) return undefined
  state.seats.set(player_id, seat)
  countSeat(lobby, seat, 1)
  return lobby
}

function countSeat(lobby: Lobby, { is_spectator }: Seat, difference: 1 | -1): void {
  if (is_spectator) lobby.spectator_count += difference
  else lobby.player_count += difference
}

/** Returns how many rows of the journal the tables do not reflect yet. */
async function replay(client: ClientBase, state: Seats, findings: string[]): Promise<number> {
  let row_count = 0
  let after = { shard: -1, seq: '0' }
  for (;;) {
    const { rows } = await client.query<{ shard: number; seq: string; payload: Buffer }>(
      `select j.shard, j.seq, j.payload from journal j left join shards s on s.shard = j.shard
        where j.seq > coalesce(s.projected_seq, 0) and (j.shard, j.seq) > ($1, $2::bigint)
        order by j.shard, j.seq limit $3`,
      [after.shard, after.seq, PAGE_ROWS_MAX],
    )
    for (const row of rows) {
      for (const { namespace_id, changes } of decodePage(row.payload).entries) {
        for (const change of changes) {
          const broken = take(state, namespace_id, change)
          if (broken !== null) findings.push(`row ${row.seq} of the journal of shard ${row.shard}: ${broken}`)
        }
      }
    }
    row_count += rows.length
    if (rows.length < PAGE_ROWS_MAX) return row_count
    after = rows.at(-1)!
  }
}

/** Applies the change; returns what is illegal about it, or null. */
function take(state: Seats, namespace_id: string, change: Change): string | null {
  switch (change.kind) {
    case 'lobby_created': {
      const { lobby_id, max_players_normal, max_players_direct, max_players_party } = change.lobby
      const { max_spectators: spectators_max = 0 } = change.lobby
      if (state.lobbies.has(lobby_id)) return `lobby ${lobby_id} is created twice`
      const players_max = Math.max(max_players_normal, max_players_direct, max_players_party)
      state.lobbies.set(lobby_id, { namespace_id, players_max, player_count: 0, spectators_max, spectator_count: 0 })
      return null
    }
    case 'lobby_stopped': {
      if (!state.lobbies.delete(change.lobby_id)) return `lobby ${change.lobby_id} stops and does not live`
      for (const [player_id, seat] of state.seats) if (seat.lobby_id === change.lobby_id) state.seats.delete(player_id)
      return null
    }
    case 'player_reserved': {
      const { player_id, lobby_id, client, is_spectator = false } = change.player
      if (state.seats.has(player_id)) return `player ${player_id} gets a second seat`
      const lobby = addSeat(state, player_id, { lobby_id, client, is_connected: false, is_spectator })
      if (lobby === undefined) return `player ${player_id} gets a seat in lobby ${lobby_id}, which does not live`
      if (lobby.spectator_count > lobby.spectators_max) {
        return `lobby ${lobby_id} gets spectator ${lobby.spectator_count} of ${lobby.spectators_max}`
      }
      if (lobby.player_count <= lobby.players_max) return null
      return `lobby ${lobby_id} gets player ${lobby.player_count} of ${lobby.players_max}`
    }
    case 'player_connected': {
      const seat = state.seats.get(change.player_id)
      if (seat === undefined) return `player ${change.player_id} connects and has no seat`
      if (seat.is_connected) return `player ${change.player_id} connects twice`
      seat.is_connected = true
      return null
    }
    case 'player_dropped': {
      const seat = state.seats.get(change.player_id)
      if (seat === undefined) return `player ${change.player_id} drops out and has no seat`
      seat.is_connected = false
      return null
    }
    case 'player_removed': {
      const seat = state.seats.get(change.player_id)
      if (seat === undefined) return `player ${change.player_id} leaves and has no seat`
      state.seats.delete(change.player_id)
      const lobby = state.lobbies.get(seat.lobby_id)
      if (lobby !== undefined) countSeat(lobby, seat, -1)
      return null
    }
    default:
      // What else a lobby does, and what has nothing to do with seats.
      if (!('lobby_id' in change) || state.lobbies.has(change.lobby_id)) return null
      return `lobby ${change.lobby_id} changes and does not live`
  }
}

/** Limits may have been lowered since, and that ends nothing: so these are remarks. */
async function exceededLimits(client: ClientBase, { lobbies, seats }: Seats): Promise<string[]> {
  const lobby_counts = new Map<string, number>()
  for (const { namespace_id } of lobbies.values()) increase(lobby_counts, namespace_id)
  const client_counts = new Map<string, Map<string, number>>()
  for (const { lobby_id, client: bucket, is_spectator } of seats.values()) {
    const namespace_id = lobbies.get(lobby_id)?.namespace_id
    if (namespace_id === undefined || is_spectator) continue
    const counts = client_counts.get(namespace_id) ?? new Map()
    client_counts.set(namespace_id, counts)
    increase(counts, bucket)
  }
  const { rows } = await client.query<{
    namespace_id: string
    lobby_count_max: string
    max_players_per_client: string
  }>('select namespace_id, lobby_count_max, max_players_per_client from namespaces where namespace_id = any($1)', [
    [...lobby_counts.keys()],
  ])
  const remarks: string[] = []
  for (const { namespace_id, lobby_count_max, max_players_per_client } of rows) {
    const lobby_count = lobby_counts.get(namespace_id) ?? 0
    const player_count = Math.max(0, ...(client_counts.get(namespace_id)?.values() ?? []))
    const exceeded = [
      ...(lobby_count > Number(lobby_count_max) ? [`${lobby_count} lobbies of ${lobby_count_max}`] : []),
      ...(player_count > Number(max_players_per_client)
        ? [`a client with ${player_count} players of ${max_players_per_client}`]
        : []),
    ]
    if (exceeded.length > 0)
      remarks.push(
        `namespace ${namespace_id} has ${exceeded.join(' and ')}; unless its limits were lowered, that is a fault`,
      )
  }
  return remarks.slice(0, TOLD_MAX)
}

function increase(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
