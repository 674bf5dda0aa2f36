// Programs of two versions may share the database during an upgrade. `additive_migrations`: migrations that the version before
// the one that ran them may ignore. `node_versions`: the program of each node, as its supervisor started it.
export const statements = `
  create table additive_migrations (
    name text primary key,
    wire_version integer not null
  );
  create table node_versions (
    node_id text primary key,
    version text not null,
    wire_version integer not null,
    start_ts timestamptz(3) not null default now()
  );
`
