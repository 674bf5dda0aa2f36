// Every table as the first release has it, in one statement list. Who writes which table stands in schema.ts.
//
// Policies limit the database role of a joined node to the rows of its own node. They concern no other role: `muster_node()` is
// null for the platform's own roles, and the owner of the tables is exempt. A row is visible when any policy allows it. The
// queries inside a policy are limited by the policies of their tables, so a node sees the versions of the lobbies that it sees.
const GAUGES = [
  'lobby_count',
  'lobby_closed_count',
  'lobby_unready_count',
  'lobby_preemptive_count',
  'player_count',
  'player_unready_count',
]
/** In seconds. Each width is a table of its own, where the rows of one window lie together. */
const ROLL_UP_WIDTHS = [60, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400, 604_800, 2_592_000, 31_536_000]

const OWN_LOBBIES = '(node_id = (select muster_node()) or (node_id is null and region = (select muster_region())))'
const OWN_RUNS = 'lobby_id in (select lobby_id from lobby_runs where runner_id = (select muster_node()))'
const EDGE = "(select muster_has_role('edge'))"
const OWN_EDGE = "(node_id = (select muster_node()) or starts_with(node_id, (select muster_node()) || '~'))"
const OF_OWN_EDGE = 'edge_id in (select edge_id from edges)'

function gauges(type: string, suffix = ''): string {
  return GAUGES.map((gauge) => `${gauge}${suffix} ${type}`).join(',\n    ')
}

/** Rows are updated every few seconds, so each page keeps room for that. */
function partitions(table: string): string {
  return ROLL_UP_WIDTHS.map(
    (width) => `
  create table ${table}_${width}s partition of ${table} for values in (${width}) with (fillfactor = 80);`,
  ).join('')
}

/** `rows`: the rows of the table that belong to the node of the session. */
function nodePolicy(table: string, rows: string): string {
  const allowed = `(select muster_node()) is null or ${rows}`
  return `
  alter table ${table} enable row level security;
  create policy ${table}_of_node on ${table} using (${allowed}) with check (${allowed});`
}

function edgePolicy(table: string, rows: string): string {
  return nodePolicy(table, `(${EDGE} and ${rows})`)
}

export const statements = `
  -- Groups, people and sign-in.
  create table groups (
    group_id uuid primary key,
    display_name text not null,
    create_ts timestamptz(3) not null default now()
  );

  create table users (
    user_id uuid primary key,
    email text unique,
    access_name text unique,
    display_name text not null,
    create_ts timestamptz(3) not null default now(),
    check ((email is null) <> (access_name is null))
  );

  create table user_sessions (
    session_id uuid primary key,
    user_id uuid not null references users on delete cascade,
    generation integer not null default 0,
    access_token_id uuid,
    create_ts timestamptz(3) not null,
    refresh_ts timestamptz(3) not null,
    expire_ts timestamptz(3) not null,
    end_ts timestamptz(3),
    client_ip text,
    user_agent text
  );
  create index on user_sessions (user_id, refresh_ts);
  create index on user_sessions (expire_ts);
  create index on user_sessions (end_ts) where end_ts is not null;

  create table sign_in_links (
    link_hash bytea primary key,
    access_name text not null,
    access_token_id uuid,
    create_ts timestamptz(3) not null,
    expire_ts timestamptz(3) not null,
    use_ts timestamptz(3)
  );
  create index on sign_in_links (expire_ts);

  create table email_verifications (
    verification_id uuid primary key,
    email text not null,
    client text not null,
    code_hash bytea not null,
    attempt_count integer not null default 0,
    create_ts timestamptz(3) not null,
    expire_ts timestamptz(3) not null,
    complete_ts timestamptz(3),
    networks text[] not null default '{}'
  );
  create index on email_verifications (email, create_ts);
  create index on email_verifications (client, create_ts);
  create index on email_verifications (create_ts);
  create index on email_verifications using gin (networks);

  create table group_members (
    group_id uuid not null references groups on delete cascade,
    user_id uuid not null references users on delete cascade,
    role text not null,
    join_ts timestamptz(3) not null,
    primary key (group_id, user_id)
  );
  create index on group_members (user_id);
  create unique index on group_members (group_id) where role = 'owner';

  create table group_invites (
    code_hash bytea primary key,
    group_id uuid not null references groups on delete cascade,
    role text not null,
    use_count integer not null default 0,
    use_count_max integer not null,
    create_ts timestamptz(3) not null,
    expire_ts timestamptz(3) not null,
    revoke_ts timestamptz(3)
  );
  create index on group_invites (group_id);
  create index on group_invites (expire_ts);

  -- Games, and what developers upload and deploy.
  create table games (
    game_id uuid primary key,
    developer_group_id uuid not null references groups,
    name_id text not null unique,
    display_name text not null,
    create_ts timestamptz(3) not null default now(),
    version_number bigint not null default 0
  );
  create index on games (developer_group_id);

  create table device_links (
    device_link_id uuid primary key,
    game_id uuid not null references games on delete cascade,
    complete_ts timestamptz(3) not null
  );
  create index on device_links (complete_ts);

  create table versions (
    version_id uuid primary key,
    game_id uuid not null references games,
    display_name text not null,
    config jsonb not null,
    create_ts timestamptz(3) not null default now(),
    secrets text,
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
    expire_ts timestamptz,
    unique (game_id, name_id)
  );
  create index on namespaces (version_id);
  create index on namespaces (expire_ts) where expire_ts is not null;

  create table namespace_auth_users (
    namespace_id uuid not null references namespaces on delete cascade,
    "user" text not null,
    password_hash text not null,
    create_ts timestamptz(3) not null default now(),
    primary key (namespace_id, "user")
  );

  create table namespace_versions (
    deploy_id uuid primary key,
    deploy_number bigint generated always as identity,
    namespace_id uuid not null references namespaces on delete cascade,
    version_id uuid not null references versions on delete cascade,
    deploy_ts timestamptz(3) not null default now(),
    caller_kind text not null,
    caller_name text,
    message text,
    caller_user_id uuid,
    is_rollback boolean not null default false
  );
  create index on namespace_versions (namespace_id, deploy_number);
  create index on namespace_versions (version_id);

  create table game_secrets (
    secret_id uuid primary key,
    game_id uuid not null references games on delete cascade,
    namespace_id uuid references namespaces on delete cascade,
    name text collate "C" not null,
    value text not null,
    byte_count integer not null,
    update_ts timestamptz(3) not null
  );
  create unique index game_secrets_of_games on game_secrets (game_id, name) where namespace_id is null;
  create unique index game_secrets_of_namespaces on game_secrets (namespace_id, name) where namespace_id is not null;
  create index game_secrets_by_game on game_secrets (game_id);

  create table draining_versions (
    namespace_id uuid not null references namespaces on delete cascade,
    version_id uuid not null references versions on delete cascade,
    shard smallint not null,
    is_draining boolean not null,
    primary key (namespace_id, version_id)
  );
  create index on draining_versions (shard);
  create index on draining_versions (version_id);

  create table uploads (
    upload_id uuid primary key,
    game_id uuid not null references games,
    kind text not null,
    content_length bigint not null,
    create_ts timestamptz(3) not null default now(),
    complete_ts timestamptz(3)
  );
  create index on uploads (game_id);
  create index on uploads (create_ts) where complete_ts is null;

  create table upload_files (
    upload_id uuid not null references uploads,
    path text not null,
    byte_offset bigint not null,
    content_length bigint not null,
    content_type text,
    object_key text not null unique,
    sha256 text,
    block_hashes bytea,
    checked_ts timestamptz(3),
    is_packed boolean not null default false,
    expected_sha256 text,
    primary key (upload_id, path, byte_offset)
  );
  create index on upload_files (checked_ts nulls first) where sha256 is not null;
  create index on upload_files using hash (sha256);
  create index upload_files_sha256_index on upload_files (sha256, content_length) where sha256 is not null and not is_packed;

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
    file_list text,
    image jsonb,
    unique (game_id, image_tag)
  );
  create index on builds (upload_id);

  create table game_images (
    game_id uuid not null references games on delete cascade,
    kind text not null,
    upload_id uuid not null unique references uploads on delete cascade,
    sha256 text not null,
    content_type text not null,
    width integer not null,
    height integer not null,
    primary key (game_id, kind)
  );
  create index on game_images (sha256);

  create table sites (
    site_id uuid primary key,
    game_id uuid not null references games,
    upload_id uuid not null references uploads,
    display_name text not null,
    create_ts timestamptz(3) not null default now()
  );
  create index on sites (game_id);
  create index on sites (upload_id);

  create table removed_objects (
    object_key text primary key,
    due_ts timestamptz(3) not null,
    upload_id uuid
  );
  create index on removed_objects (due_ts);

  create table damaged_objects (
    object_key text primary key references upload_files (object_key) on delete cascade,
    reason text not null,
    found_by text not null,
    found_ts timestamptz(3) not null,
    quarantine_ts timestamptz(3)
  );

  -- Tokens and the audit log.
  create table tokens (
    token_id uuid primary key,
    kind text not null,
    game_id uuid not null references games on delete cascade,
    namespace_id uuid references namespaces on delete cascade,
    create_ts timestamptz(3) not null,
    expire_ts timestamptz(3),
    hostname text,
    name text,
    creator_kind text,
    creator_name text,
    creator_user_id uuid,
    use_ts timestamptz(3)
  );
  create index on tokens (game_id, kind, create_ts);
  create index on tokens (expire_ts) where expire_ts is not null;
  create index on tokens (namespace_id, hostname) where hostname is not null;

  create table revoked_tokens (
    token_id uuid primary key,
    revoke_ts timestamptz not null default clock_timestamp(),
    expire_ts timestamptz(3)
  );
  create index on revoked_tokens (revoke_ts);
  create index on revoked_tokens (expire_ts) where expire_ts is not null;

  create table audit_events (
    event_id uuid primary key,
    create_ts timestamptz not null,
    group_id uuid,
    game_id uuid,
    namespace_id uuid,
    actor_kind text not null,
    user_id uuid,
    actor_name text,
    token_id uuid,
    client_ip text not null,
    ray_id uuid not null,
    operation text not null,
    outcome text not null check (outcome in ('done', 'begun', 'failed', 'refused')),
    code text,
    changes jsonb not null,
    dropped_count integer not null
  );
  create index on audit_events (group_id, event_id);
  create index on audit_events (create_ts);
  create index on audit_events (ray_id);
  create index on audit_events (client_ip, event_id);
  create index on audit_events (user_id, event_id) where user_id is not null;
  create index on audit_events (token_id, event_id) where token_id is not null;

  -- Domains and certificates.
  create table domains (
    domain_id uuid primary key,
    namespace_id uuid not null references namespaces on delete cascade,
    domain text not null,
    create_ts timestamptz(3) not null default now(),
    verification_status text not null,
    txt_value text not null,
    cname_label text not null unique,
    verification_errors jsonb not null default '[]',
    failure_count integer not null default 0,
    verify_ts timestamptz(3),
    proof text,
    unique (namespace_id, domain)
  );
  create unique index domains_active on domains (domain) where verification_status = 'active';
  create index domains_active_reversed on domains (reverse(domain) text_pattern_ops) where verification_status = 'active';

  create table released_domains (
    domain text primary key,
    group_id uuid not null,
    release_ts timestamptz(3) not null
  );
  create index on released_domains (release_ts);

  create table certificates (
    host text primary key,
    wish_ts timestamptz(3) not null,
    next_ts timestamptz(3) not null,
    failure_count integer not null default 0,
    error text,
    chain text,
    private_key text,
    expire_ts timestamptz(3)
  );
  create index certificates_next on certificates (next_ts);

  create table acme_accounts (
    directory_url text primary key,
    private_key text not null
  );

  create table acme_challenges (
    token text primary key,
    host text not null,
    key_authorization text not null,
    expire_ts timestamptz(3) not null
  );

  create table acme_orders (
    order_id uuid primary key,
    host text not null,
    registrable_domain text not null,
    is_renewal boolean not null,
    create_ts timestamptz(3) not null
  );
  create index acme_orders_create on acme_orders (create_ts);

  -- The journal, and who serves its shards.
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

  create table journal_readers (
    shard smallint not null,
    reader text not null,
    read_seq bigint not null,
    primary key (shard, reader)
  );

  create table matchmakers (
    writer uuid primary key,
    node_id text not null,
    address text not null,
    start_ts timestamptz not null default clock_timestamp(),
    seen_ts timestamptz not null default clock_timestamp(),
    book_ms bigint not null,
    served_ms bigint,
    is_leaving boolean not null default false,
    speaks_tls boolean not null default false
  );

  create table shard_leases (
    shard smallint primary key,
    writer uuid,
    served_ms bigint not null default 0,
    is_served boolean not null default false
  );
  insert into shard_leases (shard) select shard from generate_series(0, 63) as shards (shard);

  create table port_claims (
    transport text not null,
    port integer not null,
    shard smallint not null,
    lobby_id uuid not null,
    free_ms bigint,
    primary key (transport, port)
  );
  create index port_claims_shard on port_claims (shard) where free_ms is null;

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

  -- What the journal says, as rows.
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
    stop_reason text,
    tier text not null default 'basic-1d1',
    cpu_cores double precision not null default 1,
    memory_mb integer not null default 1024,
    edge_ports jsonb not null default '[]',
    creator_identity_id uuid,
    ray_id uuid,
    is_stalled boolean not null default false,
    has_reported_players boolean not null default false,
    seats_expired_while_connected integer not null default 0,
    connections_at_stop integer,
    seat_hold_ms integer,
    node_id text
  );
  create index on lobbies (shard) where stop_ts is null;
  create index on lobbies (region) where stop_ts is null;
  create index on lobbies (namespace_id, create_ts);
  create index on lobbies (stop_ts) where stop_ts is not null;
  create index on lobbies (version_id) where stop_ts is null;
  create index lobbies_with_edge_ports on lobbies (stop_ts) where edge_ports <> '[]';
  create index on lobbies (ray_id) where ray_id is not null;

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
    disconnect_key text,
    identity_id uuid,
    leader_player_id uuid
  );
  create index on players (shard) where remove_ts is null;
  create index on players (remove_ts) where remove_ts is not null;
  create index on players (lobby_id);
  create index on players (client, namespace_id, create_ts);
  create index on players (identity_id, create_ts) where identity_id is not null;

  create table parties (
    party_id uuid primary key,
    namespace_id uuid not null,
    shard smallint not null,
    code text not null,
    leader_identity_id uuid not null,
    members jsonb not null,
    revision integer not null,
    create_ts timestamptz(3) not null,
    expire_ts timestamptz(3) not null,
    end_ts timestamptz(3)
  );
  create index on parties (shard) where end_ts is null;
  create index on parties (end_ts);

  create table identities (
    identity_id uuid primary key,
    namespace_id uuid not null references namespaces on delete cascade,
    display_name text not null,
    account_number integer not null,
    create_ts timestamptz(3) not null default now(),
    seen_ts timestamptz(3) not null
  );
  create index on identities (namespace_id);
  create index on identities (seen_ts);
  create index on identities (create_ts) where seen_ts = create_ts;
  create index on identities (namespace_id, create_ts) where seen_ts = create_ts;

  create table captcha_clients (
    namespace_id uuid not null,
    client text not null,
    shard smallint not null,
    verify_ts timestamptz(3) not null,
    expire_ts timestamptz(3) not null,
    request_count integer not null,
    primary key (namespace_id, client)
  );
  create index on captcha_clients (shard);
  create index on captcha_clients (expire_ts);

  create table captcha_claims (
    response_hash bytea primary key,
    claimed_by bytea not null,
    is_answered boolean not null default false,
    expire_ts timestamptz(3) not null
  );
  create index on captcha_claims (expire_ts);

  -- Nodes, and their links to the platform.
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

  create table node_invitations (
    invitation_id uuid primary key,
    secret_hash text not null unique,
    node_id text not null,
    region text not null,
    roles text[] not null,
    create_ts timestamptz(3) not null default now(),
    expire_ts timestamptz(3) not null,
    use_ts timestamptz(3),
    use_ip text,
    revoke_ts timestamptz(3)
  );

  create table node_links (
    node_id text primary key references nodes on delete cascade,
    key_hash text not null,
    database_role text unique,
    join_ts timestamptz(3) not null default now(),
    certificate_expire_ts timestamptz(3) not null,
    version text not null,
    seen_ts timestamptz(3),
    round_trip_ms double precision,
    clock_offset_ms double precision,
    revoke_ts timestamptz(3)
  );

  create table node_versions (
    node_id text primary key,
    version text not null,
    wire_version integer not null,
    start_ts timestamptz(3) not null default now()
  );

  -- Runners, and the lobbies that run on them.
  create unlogged table runners (
    runner_id text primary key,
    regions text[] not null,
    disk_free_bytes bigint not null,
    ts timestamptz(3) not null default now(),
    cpu_cores double precision,
    memory_mb integer,
    port_count integer not null default 0,
    version text not null default '',
    report_seq bigint not null default 0,
    refusal text
  );

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
    exit_reason text,
    namespace_id uuid,
    region text,
    cpu_cores double precision,
    build_id uuid,
    cpu_ms bigint,
    log_tail jsonb,
    game_id uuid,
    group_id uuid,
    stall_ts timestamptz,
    listening jsonb,
    ready_check jsonb,
    seen_ready_ts timestamptz
  );
  create index on lobby_runs (runner_id) where exit_ts is null;
  create index on lobby_runs (exit_ts) where exit_ts is not null;
  create index on lobby_runs (group_id, exit_ts) include (start_ts, game_id, region, cpu_cores);

  create unlogged table lobby_usage (
    lobby_id uuid primary key,
    namespace_id uuid not null,
    cpu_cores double precision not null,
    memory_bytes bigint not null
  ) with (fillfactor = 50);
  create index on lobby_usage (namespace_id);

  create unlogged table log_questions (
    question_id uuid primary key,
    lobby_id uuid not null,
    runner_id text not null,
    question jsonb not null,
    ask_ts timestamptz(3) not null default now()
  );

  create unlogged table log_answers (
    question_id uuid primary key references log_questions on delete cascade,
    answer text not null
  );

  -- Edges, and the players whose connections they hold.
  create table edges (
    edge_id uuid primary key,
    node_id text not null,
    start_ts timestamptz not null default now(),
    silent_ts timestamptz,
    public_host text,
    http_port integer,
    https_port integer,
    unnamed_proxy text,
    unnamed_proxy_ts timestamptz
  );

  create table edge_ports (
    transport text not null,
    port integer not null,
    node_id text not null default '',
    primary key (node_id, transport, port)
  );

  create unlogged table edge_reports (
    edge_id uuid primary key references edges on delete cascade,
    report_seq bigint not null,
    change_seq bigint not null
  );

  create unlogged table lobby_connections (
    edge_id uuid not null references edge_reports on delete cascade,
    lobby_id uuid not null,
    connection_count integer not null,
    change_seq bigint not null,
    primary key (edge_id, lobby_id)
  );
  create index lobby_connections_changes on lobby_connections (edge_id, change_seq);

  create unlogged table lobby_traffic (
    lobby_id uuid primary key,
    bytes_in bigint not null,
    bytes_out bigint not null,
    ts timestamptz(3) not null default now(),
    refused_count bigint not null default 0,
    refused_client text
  );
  create index on lobby_traffic (ts);

  create unlogged table edge_players (
    edge_id uuid not null references edge_reports on delete cascade,
    player_id uuid not null,
    lobby_id uuid not null,
    namespace_id uuid not null,
    is_open boolean not null,
    change_seq bigint not null,
    primary key (edge_id, player_id)
  );
  create index edge_players_changes on edge_players (edge_id, change_seq);

  create unlogged table edge_admissions (
    edge_id uuid not null references edge_reports on delete cascade,
    player_id uuid not null,
    change_seq bigint not null,
    code text,
    primary key (edge_id, player_id)
  );

  -- Key-value data of games.
  create table kv_entries (
    namespace_id uuid not null references namespaces on delete cascade,
    key text collate "C" not null,
    directory text collate "C" not null,
    value text not null,
    revision bigint not null,
    update_ts timestamptz(3) not null,
    primary key (namespace_id, key)
  );
  create index on kv_entries (namespace_id, directory, key);

  create table kv_usage (
    namespace_id uuid primary key references namespaces on delete cascade,
    entry_count bigint not null,
    byte_count bigint not null,
    revision bigint not null
  );

  -- Analytics: facts one by one, in a partition a day, and their sums by line. A line is a whole namespace, one of its regions
  -- or one of its game modes.
  create table analytics_lines (
    line_id integer generated by default as identity primary key,
    namespace_id uuid not null,
    region text,
    game_mode text,
    ${gauges('integer not null default 0')},
    unique nulls not distinct (namespace_id, region, game_mode)
  );

  create table analytics_series (
    series_id integer generated by default as identity primary key,
    namespace_id uuid not null,
    region text not null,
    game_mode text not null,
    line_ids integer[] not null,
    unique (namespace_id, region, game_mode)
  );

  create table analytics_lobbies (
    lobby_id uuid primary key,
    series_id integer not null,
    is_custom boolean not null,
    is_ready boolean not null,
    is_closed boolean not null,
    create_ts timestamptz(3) not null,
    stop_ts timestamptz(3)
  );
  create index on analytics_lobbies (stop_ts) where stop_ts is not null;

  create table analytics_players (
    player_id uuid primary key,
    lobby_id uuid not null,
    connect_ts timestamptz(3),
    played_ms bigint
  );
  create index on analytics_players (lobby_id);

  create type analytics_event_kind as enum (
    'lobby_created', 'lobby_ready', 'lobby_closed', 'lobby_stopped', 'lobby_exited',
    'player_reserved', 'player_connected', 'player_dropped', 'player_removed'
  );
  create table analytics_events (
    ts timestamptz(3) not null,
    duration_ms bigint,
    series_id integer not null,
    exit_code integer,
    kind analytics_event_kind not null,
    ${gauges('smallint not null', '_change')},
    failed boolean
  ) partition by range (ts);
  create index on analytics_events (series_id, ts);

  create table analytics_roll_ups (
    ts timestamptz(3) not null,
    ready_ms bigint not null,
    played_ms bigint not null,
    line_id integer not null,
    width integer not null,
    ${gauges('integer not null')},
    ${gauges('integer not null', '_change')},
    new_lobby_count integer not null,
    new_player_count integer not null,
    ready_lobby_count integer not null,
    played_count integer not null,
    stopped_lobby_count integer not null,
    failed_lobby_count integer not null,
    primary key (line_id, width, ts)
  ) partition by list (width);
  ${partitions('analytics_roll_ups')}

  create table analytics_exit_codes (
    ts timestamptz(3) not null,
    line_id integer not null,
    width integer not null,
    exit_code integer not null,
    lobby_count integer not null,
    primary key (line_id, width, ts, exit_code)
  ) partition by list (width);
  ${partitions('analytics_exit_codes')}

  -- Explanations of decisions.
  create table explanations (
    ray_id uuid primary key,
    namespace_id uuid not null references namespaces on delete cascade,
    operation text not null,
    create_ts timestamptz(3) not null,
    duration_us bigint not null,
    code text,
    explanation text not null,
    explanation_seq bigint generated always as identity
  );
  create index on explanations (namespace_id, create_ts);
  create index on explanations (create_ts);
  create index on explanations (namespace_id, explanation_seq);

  create table ray_spans (
    ray_id uuid not null,
    service text not null,
    operation text not null,
    code text,
    owner_kind text,
    owner_id uuid not null,
    ts timestamptz not null,
    duration_us bigint not null,
    spans jsonb not null,
    marks jsonb not null,
    player_id uuid
  );
  create index on ray_spans (ray_id);
  create index on ray_spans (owner_id, ts);
  create index on ray_spans (ts);
  create index on ray_spans (player_id, ts) where player_id is not null;

  -- Jobs and backups.
  create unlogged table job_runs (
    role text not null,
    job text not null,
    end_ts timestamptz(3) not null,
    duration_ms integer not null,
    failure text,
    success_ts timestamptz(3),
    primary key (role, job)
  );

  create table backups (
    backup_id uuid primary key,
    folder text not null,
    create_ts timestamptz(3) not null,
    end_ts timestamptz(3) not null,
    row_count bigint not null,
    object_count bigint not null,
    object_bytes bigint not null,
    lacking_count integer not null
  );
  create index on backups (end_ts);

  create table verifications (
    verification_id uuid primary key,
    folder text,
    end_ts timestamptz(3) not null,
    is_sound boolean not null,
    finding_count integer not null
  );
  create index on verifications (end_ts);

  -- What a joined node may see and write.
  -- A database role of a node that is not that of a valid link has the empty node, and sees no row. PostgreSQL shows the user of
  -- a session as unknown (OID=...) once the role was dropped.
  create function muster_node() returns text
    language sql stable security definer set search_path from current
    as $$
      select coalesce(
        (select node_id from node_links where database_role = session_user::text and revoke_ts is null),
        case when session_user::text ~ '^(muster_node_|unknown )' then '' end
      )
    $$;
  create function muster_region() returns text
    language sql stable security definer set search_path from current
    as $$ select region from nodes where node_id = muster_node() $$;
  create function muster_has_role(wanted text) returns boolean
    language sql stable security definer set search_path from current
    as $$ select exists (select from nodes where node_id = muster_node() and wanted = any(roles)) $$;
  create function muster_runs_in(config jsonb, region text) returns boolean
    language sql immutable
    as $$
      select exists (
        select from jsonb_each(config #> '{matchmaker,game_modes}') as mode (name, members)
        where coalesce(members -> 'regions', config #> '{matchmaker,regions}', jsonb_build_object(region, 1)) ? region
      )
    $$;

  ${nodePolicy('lobby_runs', 'runner_id = (select muster_node())')}
  create policy lobby_runs_started_by_node on lobby_runs as restrictive for insert
    with check ((select muster_node()) is null or exists (
      select from lobbies where lobbies.lobby_id = lobby_runs.lobby_id
    ));
  ${nodePolicy('runners', 'runner_id = (select muster_node())')}
  ${nodePolicy('lobbies', OWN_LOBBIES)}
  ${nodePolicy('lobby_usage', OWN_RUNS)}
  ${nodePolicy('lobby_traffic', OWN_RUNS)}
  ${nodePolicy('log_questions', 'runner_id = (select muster_node())')}
  ${nodePolicy('log_answers', 'question_id in (select question_id from log_questions)')}
  ${nodePolicy('job_runs', "role = 'runner'")}
  ${nodePolicy('ray_spans', "service = 'runner'")}
  ${nodePolicy('versions', 'version_id in (select version_id from lobbies where stop_ts is null)')}

  -- A node also reads the deployed versions that may run in its region, to unpack their builds ahead.
  create policy versions_deployed on versions for select using (
    muster_runs_in(config, (select muster_region())) and version_id in (select version_id from namespaces)
  );

  create policy lobbies_of_edge on lobbies for select using (${EDGE});
  create policy lobby_runs_of_edge on lobby_runs for select using (${EDGE});
  create policy versions_of_edge on versions for select using (${EDGE});
  create policy lobby_traffic_of_edge on lobby_traffic using (${EDGE}) with check (${EDGE});
  create policy ray_spans_of_edge on ray_spans for insert with check (${EDGE} and service = 'edge');
  ${edgePolicy('edges', OWN_EDGE)}
  ${edgePolicy('edge_reports', OF_OWN_EDGE)}
  ${edgePolicy('lobby_connections', OF_OWN_EDGE)}
  ${edgePolicy('edge_players', OF_OWN_EDGE)}
  ${edgePolicy('edge_admissions', OF_OWN_EDGE)}
  ${edgePolicy('edge_ports', 'node_id = (select muster_node())')}
`
