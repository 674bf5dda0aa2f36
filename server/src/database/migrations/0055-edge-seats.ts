// Seats that the edge checks: which players have connections through which edge, and what the book says of them.
export const statements = `
  alter table lobbies add column seat_hold_ms integer;

  create unlogged table edge_players (
    edge_id uuid not null references edge_reports on delete cascade,
    player_id uuid not null,
    lobby_id uuid not null,
    namespace_id uuid not null,
    is_open boolean not null,
    change_seq bigint not null,
    primary key (edge_id, player_id)
  );
  create index edge_players_changes on edge_players (edge_id, change_seq);

  create unlogged table edge_admissions (
    edge_id uuid not null references edge_reports on delete cascade,
    player_id uuid not null,
    change_seq bigint not null,
    code text,
    primary key (edge_id, player_id)
  );
`
