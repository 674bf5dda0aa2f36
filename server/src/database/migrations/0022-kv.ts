// What games keep beyond their lobbies. Texts are compared byte by byte, so that a list goes on behind its last key
// whatever the database's language is. A namespace's row of usage is held by each of its writers.
export const statements = `
  create table kv_entries (
    namespace_id uuid not null references namespaces on delete cascade,
    key text collate "C" not null,
    directory text collate "C" not null,
    value text not null,
    revision bigint not null,
    update_ts timestamptz(3) not null,
    primary key (namespace_id, key)
  );
  create index on kv_entries (namespace_id, directory, key);

  create table kv_usage (
    namespace_id uuid primary key references namespaces on delete cascade,
    entry_count bigint not null,
    byte_count bigint not null,
    revision bigint not null
  );
`
