// Several matchmakers share the shards: a row for each process, and a lease for each shard. `served_ms` is in book time: until
// when the process has served all its shards with `is_served`, or a shard without such a process was served.
export const statements = `
  create table matchmakers (
    writer uuid primary key,
    node_id text not null,
    address text not null,
    start_ts timestamptz not null default clock_timestamp(),
    seen_ts timestamptz not null default clock_timestamp(),
    book_ms bigint not null,
    served_ms bigint,
    is_leaving boolean not null default false
  );

  create table shard_leases (
    shard smallint primary key,
    writer uuid,
    served_ms bigint not null default 0,
    is_served boolean not null default false
  );
  insert into shard_leases (shard) select shard from generate_series(0, 63) as shards (shard);
`
