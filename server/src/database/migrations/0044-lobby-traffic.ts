// Bytes between clients and lobbies, as the edges count them. Not logged: after a crash of the database the counts begin anew.
export const statements = `
  create unlogged table lobby_traffic (
    lobby_id uuid primary key,
    bytes_in bigint not null,
    bytes_out bigint not null,
    ts timestamptz(3) not null default now()
  );
  create index on lobby_traffic (ts);
`
