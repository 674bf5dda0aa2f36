// Damage of stored files: the hashes of a file's blocks, when its bytes were last compared with its hash, and which
// objects failed that comparison. `sha256` is null until an upload is complete, so the index holds completed files only.
export const statements = `
  alter table upload_files
    add column block_hashes bytea,
    add column checked_ts timestamptz(3);
  create index on upload_files (checked_ts nulls first) where sha256 is not null;
  create index on upload_files using hash (sha256);

  create table damaged_objects (
    object_key text primary key references upload_files (object_key) on delete cascade,
    reason text not null,
    found_by text not null,
    found_ts timestamptz(3) not null,
    quarantine_ts timestamptz(3)
  );
`
