// Restores that were asked for over the API: they make another platform, and change nothing of this one. The id of a platform is in
// its backups, so that two platforms do not share a repository.
export const statements = `
  create table restores (
    restore_id uuid primary key,
    backup text not null,
    folder text not null,
    node_id text not null,
    begin_ts timestamptz(3) not null,
    end_ts timestamptz(3),
    failure text
  );

  create table platform_ids (platform_id uuid primary key);
  insert into platform_ids (platform_id) values (gen_random_uuid());
`
