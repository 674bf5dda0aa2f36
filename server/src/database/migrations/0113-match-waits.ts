// How many requests waited how long for a match by rules, by steps of their wait in units of 100 ms (observe/duration-steps.ts).
export const statements = `
  create table match_waits (
    namespace_id uuid not null references namespaces on delete cascade,
    width integer not null,
    ts timestamptz(0) not null,
    step smallint not null,
    match_count integer not null,
    primary key (namespace_id, width, ts, step)
  );
  create index match_waits_fine on match_waits (ts) where width < 3600;
  create index match_waits_coarse on match_waits (ts) where width >= 3600;
`
