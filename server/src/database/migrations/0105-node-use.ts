// What machines use. A runner reports the use of its machine with its row: null where it is not known. `node_use` keeps it by the
// minute.
export const statements = `
  alter table runners add column used_cpu_cores double precision;
  alter table runners add column used_memory_mb integer;
  alter table runners add column machine_cpu_cores integer;
  alter table runners add column machine_memory_mb integer;
  create table node_use (
    node_id text not null,
    ts timestamptz(0) not null,
    cpu_cores double precision not null,
    memory_mb integer not null,
    cpu_cores_max integer not null,
    memory_mb_max integer not null,
    primary key (node_id, ts)
  );
  create index node_use_ts on node_use (ts);
`
