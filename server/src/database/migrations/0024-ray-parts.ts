// Where the time of a request went: a row for each role that it went through, written by that role. An owner of no kind
// is nobody. A lobby remembers the request that started it.
export const statements = `
  create table ray_parts (
    ray_id uuid not null,
    service text not null,
    operation text not null,
    code text,
    owner_kind text,
    owner_id uuid not null,
    ts timestamptz not null,
    duration_us bigint not null,
    spans jsonb not null,
    marks jsonb not null
  );
  create index on ray_parts (ray_id);
  create index on ray_parts (owner_id, ts);
  create index on ray_parts (ts);

  alter table lobbies add column ray_id uuid;
`
