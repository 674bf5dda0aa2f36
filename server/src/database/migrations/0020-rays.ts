// Rays that are kept to be explained; and the last lines of servers that failed, beside the end of their run.
export const statements = `
  create table rays (
    ray_id uuid primary key,
    namespace_id uuid not null references namespaces on delete cascade,
    operation text not null,
    create_ts timestamptz(3) not null,
    duration_us bigint not null,
    code text,
    explanation text not null
  );
  create index on rays (namespace_id, create_ts);
  create index on rays (create_ts);

  alter table lobby_runs add column log_tail jsonb;
`
