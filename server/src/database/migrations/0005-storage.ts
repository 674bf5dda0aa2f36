// What is stored and no longer needed, and what its sweeps look for.
export const statements = `
  create table removed_objects (
    object_key text primary key,
    due_ts timestamptz(3) not null,
    upload_id uuid
  );
  create index on removed_objects (due_ts);

  create index on uploads (game_id);
  create index on uploads (create_ts) where complete_ts is null;
  create index on builds (upload_id);
  create index on sites (upload_id);
  create index on namespaces (version_id);
  create index on lobbies (version_id) where stop_ts is null;
  create index on lobby_runs (exit_ts) where exit_ts is not null;
`
