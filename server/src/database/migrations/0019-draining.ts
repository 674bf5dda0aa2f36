// Versions that drain in a namespace. A row stays when its draining has ended.
export const statements = `
  create table draining_versions (
    namespace_id uuid not null references namespaces on delete cascade,
    version_id uuid not null references versions on delete cascade,
    shard smallint not null,
    is_draining boolean not null,
    primary key (namespace_id, version_id)
  );
  create index on draining_versions (shard);
  create index on draining_versions (version_id);
`
