// Open connections to lobbies, as each edge reports them every second. An edge has a row in `edges` from before it accepts a
// connection until it has ended; what it reports is not logged, because a crash of the database makes it unknown, and the
// edge reports it again. And what a lobby's server has never reported, with what that has cost.
export const statements = `
  create table edges (
    edge_id uuid primary key,
    node_id text not null,
    start_ts timestamptz not null default now(),
    silent_ts timestamptz
  );

  create unlogged table edge_reports (
    edge_id uuid primary key references edges on delete cascade,
    report_seq bigint not null,
    change_seq bigint not null
  );

  create unlogged table lobby_connections (
    edge_id uuid not null references edge_reports on delete cascade,
    lobby_id uuid not null,
    connection_count integer not null,
    change_seq bigint not null,
    primary key (edge_id, lobby_id)
  );
  create index lobby_connections_changes on lobby_connections (edge_id, change_seq);

  alter table lobbies add column has_reported_players boolean not null default false;
  alter table lobbies add column seats_expired_while_connected integer not null default 0;
  alter table lobbies add column connections_at_stop integer;

  update lobbies set has_reported_players = true where stop_ts is null and exists (
    select from players where players.lobby_id = lobbies.lobby_id
      and (connect_ts is not null or connect_key is not null or disconnect_key is not null)
  );
`
