// What each runner says of its machine, every other second: without a log, because a disk that fills up must not be filled by
// that, and what was said before a crash says nothing. And the time that a run has used.
export const statements = `
  create unlogged table runners (
    runner_id text primary key,
    regions text[] not null,
    disk_free_bytes bigint not null,
    ts timestamptz(3) not null default now()
  );

  alter table lobby_runs add column cpu_ms bigint;
`
