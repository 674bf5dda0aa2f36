// Which lobby has which port of the edges, over all matchmakers: law L5 holds because the key is unique. `free_ms`: the lobby has
// ended, and the port may be claimed again from this book time on.
export const statements = `
  create table port_claims (
    transport text not null,
    port integer not null,
    shard smallint not null,
    lobby_id uuid not null,
    free_ms bigint,
    primary key (transport, port)
  );
  create index port_claims_shard on port_claims (shard) where free_ms is null;
`
