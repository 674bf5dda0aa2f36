// Requests that wait for a match by the rules of a game mode, and what each player of such a match brought.
export const statements = `
  create table tickets (
    player_id uuid primary key,
    namespace_id uuid not null,
    shard smallint not null,
    record jsonb not null,
    create_ts timestamptz(3) not null,
    end_ts timestamptz(3),
    end_reason text
  );
  create index tickets_waiting on tickets (shard) where end_ts is null;
  create index tickets_end_ts on tickets (end_ts);
  alter table players add column match jsonb;
`
