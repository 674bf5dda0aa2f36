// The edge's tcp and udp ports: those it listens at, and those that a lobby has.
export const statements = `
  create table edge_ports (
    transport text not null,
    port integer not null,
    primary key (transport, port)
  );

  alter table lobbies add column edge_ports jsonb not null default '[]';
  create index lobbies_with_edge_ports on lobbies (stop_ts) where edge_ports <> '[]';
`
