// Schedules of namespaces, and their last runs.
export const statements = `
  create table schedules (
    schedule_id uuid primary key,
    game_id uuid not null references games on delete cascade,
    namespace_id uuid not null references namespaces on delete cascade,
    name text not null,
    kind text not null,
    cron text not null,
    time_zone text not null,
    settings jsonb not null,
    is_paused boolean not null,
    create_ts timestamptz(3) not null,
    handled_ts timestamptz(3) not null
  );
  create unique index schedules_by_name on schedules (namespace_id, name);
  create index schedules_by_game on schedules (game_id);

  create table schedule_runs (
    run_id uuid primary key,
    schedule_id uuid not null references schedules on delete cascade,
    due_ts timestamptz(3) not null,
    before_s integer not null,
    is_requested boolean not null,
    outcome text not null,
    begin_ts timestamptz(3),
    begin_book_ts timestamptz(3),
    until_ts timestamptz(3),
    end_ts timestamptz(3),
    lobby_count integer not null default 0,
    failed_count integer not null default 0,
    missed_count integer not null default 0,
    message text
  );
  create unique index schedule_runs_by_due on schedule_runs (schedule_id, due_ts, before_s, is_requested);
  create index schedule_runs_open on schedule_runs (schedule_id) where end_ts is null;
`
