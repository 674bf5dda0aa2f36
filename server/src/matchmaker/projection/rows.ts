// The rows of the tables lobbies, players, captcha_clients, parties and draining_versions, from the book to the statement that writes them. An image is taken on the
// way of a find, so it is a plain copy of the book's values; what the database wants instead is made when it is written.
import type { VerifiedClient } from '../book/captcha-memory.ts'
import type { Lobby, Player } from '../book/lobby.ts'
import type { Party } from '../book/parties.ts'

/** Rows of the tables, by id; of clients and draining versions, by namespace and client or version. Times are ms since the epoch. */
export type Images = {
  lobbies: Map<string, LobbyRow>
  players: Map<string, PlayerRow>
  captcha_clients: Map<string, CaptchaClientRow>
  draining_versions: Map<string, DrainingVersionRow>
  parties: Map<string, PartyRow>
}

export type LobbyRow = ReturnType<typeof lobbyRow>
export type PlayerRow = ReturnType<typeof playerRow>
export type CaptchaClientRow = ReturnType<typeof captchaClientRow>
export type DrainingVersionRow = ReturnType<typeof drainingVersionRow>
export type PartyRow = ReturnType<typeof partyRow>

export function emptyImages(): Images {
  return {
    lobbies: new Map(),
    players: new Map(),
    captcha_clients: new Map(),
    draining_versions: new Map(),
    parties: new Map(),
  }
}

export function lobbyRow(namespace_id: string, shard: number, lobby: Lobby) {
  return {
    lobby_id: lobby.lobby_id,
    namespace_id,
    shard,
    version_id: lobby.version_id,
    game_mode: lobby.game_mode,
    region: lobby.region,
    publicity: lobby.publicity,
    is_custom: lobby.is_custom,
    is_closed: lobby.is_closed,
    is_stalled: lobby.is_stalled,
    max_players_normal: lobby.max_players_normal,
    max_players_direct: lobby.max_players_direct,
    max_players_party: lobby.max_players_party,
    tags: lobby.tags,
    lobby_config: lobby.lobby_config,
    state: lobby.state,
    player_count: lobby.players.size,
    player_deadline_ms: lobby.player_deadline_ms,
    idle_grace_ms: lobby.idle_grace_ms,
    create_ts: lobby.create_ms,
    ready_deadline_ts: lobby.ready_deadline_ms,
    ready_ts: lobby.ready_ms,
    idle_ts: lobby.idle_ms,
    stop_ts: lobby.stop_ms,
    stop_reason: lobby.stop_reason,
    has_reported_players: lobby.has_reported_players,
    seats_expired_while_connected: lobby.seats_expired_while_connected,
    connections_at_stop: lobby.connections_at_stop,
    tier: lobby.tier,
    cpu_cores: lobby.cpu_cores,
    memory_mb: lobby.memory_mb,
    edge_ports: lobby.edge_ports,
    creator_identity_id: lobby.creator_identity_id,
    ray_id: lobby.ray_id,
  }
}

export function playerRow(namespace_id: string, shard: number, player: Player) {
  return {
    player_id: player.player_id,
    lobby_id: player.lobby_id,
    namespace_id,
    shard,
    client: player.client,
    create_ts: player.create_ms,
    deadline_ts: player.deadline_ms,
    connect_ts: player.connect_ms,
    remove_ts: player.remove_ms,
    remove_reason: player.remove_reason,
    seat_key: player.seat_key,
    connect_key: player.connect_key,
    disconnect_key: player.disconnect_key,
    identity_id: player.identity_id,
    leader_player_id: player.leader_player_id,
  }
}

export function captchaClientRow(namespace_id: string, shard: number, verified: VerifiedClient) {
  return {
    namespace_id,
    client: verified.client,
    shard,
    verify_ts: verified.verify_ms,
    expire_ts: verified.expire_ms,
    request_count: verified.request_count,
  }
}

/** Its row stays when the draining has ended: so that an end is written like a beginning. */
export function drainingVersionRow(namespace_id: string, shard: number, version_id: string, is_draining: boolean) {
  return { namespace_id, version_id, shard, is_draining }
}

export function partyRow(namespace_id: string, shard: number, party: Party) {
  return {
    party_id: party.party_id,
    namespace_id,
    shard,
    code: party.code,
    leader_identity_id: party.leader_identity_id,
    members: party.members,
    revision: party.revision,
    create_ts: party.create_ms,
    expire_ts: party.expire_ms,
    end_ts: party.end_ms,
  }
}

/** One statement: the guard, the rows that depend on it, and the wake-up of the runner. */
const PROJECT_SQL = `
  with guard as (
    update shards set projected_seq = $2 where shard = $1 and projected_seq <= $2 returning shard
  ), written_lobbies as (
    insert into lobbies select image.* from guard, json_populate_recordset(null::lobbies, $3) as image
    on conflict (lobby_id) do update set
      is_closed = excluded.is_closed, is_stalled = excluded.is_stalled, state = excluded.state, player_count = excluded.player_count,
      ready_deadline_ts = excluded.ready_deadline_ts, ready_ts = excluded.ready_ts, idle_ts = excluded.idle_ts,
      stop_ts = excluded.stop_ts, stop_reason = excluded.stop_reason,
      has_reported_players = excluded.has_reported_players,
      seats_expired_while_connected = excluded.seats_expired_while_connected,
      connections_at_stop = excluded.connections_at_stop
  ), written_players as (
    insert into players (
      player_id, lobby_id, namespace_id, shard, client, create_ts, deadline_ts, connect_ts, remove_ts, remove_reason,
      seat_key, connect_key, disconnect_key, identity_id, leader_player_id
    )
    select p, l, n, shard, c, to_timestamp(t::float8 / 1000), to_timestamp(d::float8 / 1000), to_timestamp(k::float8 / 1000),
      to_timestamp(r::float8 / 1000), rr, sk, ck, dk, i, lp
    from guard, json_to_recordset($4) as image (
      p uuid, l uuid, n uuid, c text, t bigint, d bigint, k bigint, r bigint, rr text, sk text, ck text, dk text,
      i uuid, lp uuid
    )
    on conflict (player_id) do update set
      deadline_ts = excluded.deadline_ts, connect_ts = excluded.connect_ts, remove_ts = excluded.remove_ts,
      remove_reason = excluded.remove_reason, connect_key = excluded.connect_key,
      disconnect_key = excluded.disconnect_key
  ), written_clients as (
    insert into captcha_clients select image.* from guard, json_populate_recordset(null::captcha_clients, $6) as image
    on conflict (namespace_id, client) do update set
      verify_ts = excluded.verify_ts, expire_ts = excluded.expire_ts, request_count = excluded.request_count
  ), written_draining as (
    insert into draining_versions select image.* from guard, json_populate_recordset(null::draining_versions, $7) as image
    on conflict (namespace_id, version_id) do update set is_draining = excluded.is_draining
  ), written_parties as (
    insert into parties select image.* from guard, json_populate_recordset(null::parties, $8) as image
    on conflict (party_id) do update set
      code = excluded.code, leader_identity_id = excluded.leader_identity_id, members = excluded.members,
      revision = excluded.revision, expire_ts = excluded.expire_ts, end_ts = excluded.end_ts
  )
  select case when $5 then pg_notify('lobbies', '') end from guard`

/** The rows of one statement. */
export type ProjectedRows = {
  lobbies: LobbyRow[]
  players: PlayerRow[]
  captcha_clients: CaptchaClientRow[]
  draining_versions: DrainingVersionRow[]
  parties: PartyRow[]
}

export function projectQuery(shard: number, seq: number, rows: ProjectedRows, wake: boolean) {
  const lobbies = JSON.stringify(rows.lobbies.map(withTimes))
  const players = JSON.stringify(rows.players.map(briefly))
  const captcha_clients = JSON.stringify(
    rows.captcha_clients.map((row) => ({ ...row, verify_ts: time(row.verify_ts), expire_ts: time(row.expire_ts) })),
  )
  const draining_versions = JSON.stringify(rows.draining_versions)
  const parties = JSON.stringify(
    rows.parties.map((row) => ({
      ...row,
      create_ts: time(row.create_ts),
      expire_ts: time(row.expire_ts),
      end_ts: time(row.end_ts),
    })),
  )
  return {
    name: 'project',
    text: PROJECT_SQL,
    values: [shard, seq, lobbies, players, wake, captcha_clients, draining_versions, parties],
  }
}

function withTimes(row: LobbyRow) {
  return {
    ...row,
    create_ts: time(row.create_ts),
    ready_deadline_ts: time(row.ready_deadline_ts),
    ready_ts: time(row.ready_ts),
    idle_ts: time(row.idle_ts),
    stop_ts: time(row.stop_ts),
  }
}

function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

/** Players come by the ten thousand a second: short names and bare numbers cost a third to write and to read. */
function briefly(row: PlayerRow) {
  return {
    p: row.player_id,
    l: row.lobby_id,
    n: row.namespace_id,
    c: row.client,
    t: row.create_ts,
    d: row.deadline_ts,
    k: row.connect_ts ?? undefined,
    r: row.remove_ts ?? undefined,
    rr: row.remove_reason ?? undefined,
    sk: row.seat_key ?? undefined,
    ck: row.connect_key ?? undefined,
    dk: row.disconnect_key ?? undefined,
    i: row.identity_id ?? undefined,
    lp: row.leader_player_id ?? undefined,
  }
}
