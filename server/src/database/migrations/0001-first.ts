// The first tables. Who writes which of them stands in schema.ts.
export const statements = `
  create table groups (
    group_id uuid primary key,
    display_name text not null,
    create_ts timestamptz(3) not null default now()
  );
  create table games (
    game_id uuid primary key,
    developer_group_id uuid not null references groups,
    name_id text not null unique,
    display_name text not null,
    create_ts timestamptz(3) not null default now()
  );
  create index on games (developer_group_id);

  create table versions (
    version_id uuid primary key,
    game_id uuid not null references games,
    display_name text not null,
    config jsonb not null,
    create_ts timestamptz(3) not null default now(),
    unique (game_id, display_name)
  );
  create table namespaces (
    namespace_id uuid primary key,
    game_id uuid not null references games,
    name_id text not null,
    display_name text not null,
    version_id uuid not null references versions,
    create_ts timestamptz(3) not null default now(),
    lobby_count_max bigint not null default 128,
    max_players_per_client bigint not null default 8,
    max_players_per_client_vpn bigint not null default 4,
    max_players_per_client_proxy bigint not null default 2,
    max_players_per_client_tor bigint not null default 2,
    max_players_per_client_hosting bigint not null default 2,
    enable_domain_public_auth boolean not null default true,
    cdn_auth_type text not null default 'none',
    unique (game_id, name_id)
  );

  create table uploads (
    upload_id uuid primary key,
    game_id uuid not null references games,
    kind text not null,
    content_length bigint not null,
    create_ts timestamptz(3) not null default now(),
    complete_ts timestamptz(3)
  );
  create table upload_files (
    upload_id uuid not null references uploads,
    path text not null,
    byte_offset bigint not null,
    content_length bigint not null,
    content_type text,
    object_key text not null unique,
    sha256 text,
    primary key (upload_id, path, byte_offset)
  );
  create table builds (
    build_id uuid primary key,
    game_id uuid not null references games,
    upload_id uuid not null references uploads,
    display_name text not null,
    image_tag text not null,
    kind text not null,
    compression text not null,
    tags jsonb not null default '{}',
    create_ts timestamptz(3) not null default now(),
    unique (game_id, image_tag)
  );
  create table sites (
    site_id uuid primary key,
    game_id uuid not null references games,
    upload_id uuid not null references uploads,
    display_name text not null,
    create_ts timestamptz(3) not null default now()
  );
  create index on sites (game_id);

  create table journal (
    shard smallint not null,
    seq bigint not null,
    writer uuid not null,
    ts timestamptz not null default now(),
    payload bytea not null,
    primary key (shard, seq)
  );
  create table shards (
    shard smallint primary key,
    projected_seq bigint not null
  );
  create table matchmaker_lease (
    singleton boolean primary key default true check (singleton),
    node_id text not null,
    writer uuid not null,
    renew_ts timestamptz not null
  );

  create table lobbies (
    lobby_id uuid primary key,
    namespace_id uuid not null,
    shard smallint not null,
    version_id uuid not null,
    game_mode text not null,
    region text not null,
    publicity text not null,
    is_custom boolean not null,
    is_closed boolean not null,
    max_players_normal integer not null,
    max_players_direct integer not null,
    max_players_party integer not null,
    tags jsonb not null,
    lobby_config text,
    state text,
    player_count integer not null,
    player_deadline_ms integer not null,
    idle_grace_ms integer not null,
    create_ts timestamptz(3) not null,
    ready_deadline_ts timestamptz(3) not null,
    ready_ts timestamptz(3),
    idle_ts timestamptz(3),
    stop_ts timestamptz(3),
    stop_reason text
  );
  create index on lobbies (shard) where stop_ts is null;
  create index on lobbies (region) where stop_ts is null;
  create index on lobbies (namespace_id, create_ts);
  create index on lobbies (stop_ts) where stop_ts is not null;

  create table players (
    player_id uuid primary key,
    lobby_id uuid not null,
    namespace_id uuid not null,
    shard smallint not null,
    client text not null,
    create_ts timestamptz(3) not null,
    deadline_ts timestamptz(3) not null,
    connect_ts timestamptz(3),
    remove_ts timestamptz(3),
    remove_reason text,
    seat_key text,
    connect_key text,
    disconnect_key text
  );
  create index on players (shard) where remove_ts is null;
  create index on players (remove_ts) where remove_ts is not null;
  create index on players (lobby_id);

  create table lobby_runs (
    lobby_id uuid primary key,
    runner_id text not null,
    driver text not null,
    handle jsonb not null,
    ports jsonb not null,
    create_ts timestamptz(3) not null default now(),
    start_ts timestamptz(3),
    exit_ts timestamptz(3),
    exit_code integer,
    exit_reason text
  );
  create index on lobby_runs (runner_id) where exit_ts is null;
`
