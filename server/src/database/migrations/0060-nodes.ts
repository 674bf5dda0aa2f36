// Machines of the platform: which are drained or removed, what each runner may use, and on which node each lobby runs. A
// lobby from before this migration has no node: any runner of its region may run it.
export const statements = `
  create table nodes (
    node_id text primary key,
    region text,
    roles text[] not null default '{}',
    create_ts timestamptz(3) not null default now(),
    drain_ts timestamptz(3),
    drain_at_match_end boolean not null default false,
    drain_deadline_ts timestamptz(3),
    removed_ts timestamptz(3)
  );

  alter table runners add column cpu_cores double precision;
  alter table runners add column memory_mb integer;
  alter table runners add column port_count integer not null default 0;
  alter table runners add column version text not null default '';
  alter table runners add column report_seq bigint not null default 0;

  alter table lobbies add column node_id text;
`
