// What the lobbies of all matchmakers use, exactly: the statement that appends rows to the journal changes both tables. `shard_room`:
// by shard, region and node (''); `place_room`: the sums of what has a limit, which is a node, a region, or the lobbies of a
// region without a node. The maxima are what the writer of the last change knew. Cores are in millionths, so that sums are exact.
export const statements = `
  create table shard_room (
    shard smallint not null,
    region text not null,
    node_id text not null,
    cpu_micro bigint not null,
    memory_kb bigint not null,
    lobby_count bigint not null,
    primary key (shard, region, node_id)
  );
  create table place_room (
    place text primary key,
    cpu_micro bigint not null,
    memory_kb bigint not null,
    lobby_count bigint not null,
    cpu_micro_max bigint,
    memory_kb_max bigint
  );
`
