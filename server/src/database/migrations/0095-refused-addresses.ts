// Connections that edges refused because no player with their address had a seat in the lobby: their number, and the address of
// the newest one.
export const statements = `
  alter table lobby_traffic add column refused_count bigint not null default 0;
  alter table lobby_traffic add column refused_client text;
`
