// Status pages of games: their settings, the image that edges show, incidents, and the minutes that were measured.
export const statements = `
  create table status_pages (
    game_id uuid primary key references games on delete cascade,
    namespace_id uuid not null references namespaces on delete cascade,
    is_enabled boolean not null,
    title text,
    text text,
    domain text,
    measured_ts timestamptz(3),
    recent jsonb not null default '{}',
    view jsonb not null,
    view_seq integer not null default 1
  );
  create index status_pages_by_namespace on status_pages (namespace_id);
  create index status_pages_enabled on status_pages (game_id) where is_enabled;

  create table status_incidents (
    incident_id uuid primary key,
    game_id uuid not null references games on delete cascade,
    title text not null,
    state text not null,
    impact text not null,
    create_ts timestamptz(3) not null,
    update_ts timestamptz(3) not null,
    resolve_ts timestamptz(3)
  );
  create index status_incidents_by_game on status_incidents (game_id, create_ts);

  create table status_updates (
    update_id uuid primary key,
    incident_id uuid not null references status_incidents on delete cascade,
    state text not null,
    text text not null,
    create_ts timestamptz(3) not null
  );
  create index status_updates_by_incident on status_updates (incident_id, create_ts);

  create table status_days (
    namespace_id uuid not null references namespaces on delete cascade,
    region text not null,
    day date not null,
    measured_count smallint not null,
    bad_count smallint not null,
    primary key (namespace_id, region, day)
  );
`
