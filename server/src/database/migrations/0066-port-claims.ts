// Which lobby has which port of the edges, over all matchmakers: law L5 holds because the key is unique. `free_ts`: the lobby has
// ended, and the port may be claimed again from then on.
export const statements = `
  create table port_claims (
    transport text not null,
    port integer not null,
    shard smallint not null,
    lobby_id uuid not null,
    free_ts timestamptz,
    primary key (transport, port)
  );
  create index port_claims_shard on port_claims (shard) where free_ts is null;
`
