// What running lobbies use, as of their newest sample. Not logged: after a crash of the database the next samples fill it again.
export const statements = `
  create unlogged table lobby_usage (
    lobby_id uuid primary key,
    namespace_id uuid not null,
    cpu_cores double precision not null,
    memory_bytes bigint not null
  ) with (fillfactor = 50);
  create index on lobby_usage (namespace_id);
`
