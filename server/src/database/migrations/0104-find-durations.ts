// How many finds took how long, by steps of their duration (observe/duration-steps.ts): of each namespace in a minute and in wider
// units, and of the platform in a minute.
export const statements = `
  create table find_durations (
    namespace_id uuid not null references namespaces on delete cascade,
    width integer not null,
    ts timestamptz(0) not null,
    step smallint not null,
    find_count integer not null,
    primary key (namespace_id, width, ts, step)
  );
  create index find_durations_fine on find_durations (ts) where width < 3600;
  create index find_durations_coarse on find_durations (ts) where width >= 3600;
  create table platform_find_durations (
    ts timestamptz(0) not null,
    step smallint not null,
    find_count integer not null,
    primary key (ts, step)
  );
`
