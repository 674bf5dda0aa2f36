// Invitations to join, the links of joined nodes, and the policies that limit the database role of a joined node to the
// rows of its own node. A policy concerns no other role: `muster_node()` is null for them, and the owner of the tables is
// exempt. The queries inside a policy are limited by the policies of their tables: a node sees the versions of the lobbies
// that it sees.
const OWN_LOBBIES = '(node_id = (select muster_node()) or (node_id is null and region = (select muster_region())))'
const OWN_RUNS = 'lobby_id in (select lobby_id from lobby_runs where runner_id = (select muster_node()))'

/** `rows`: the rows of the table that belong to the node of the session. */
function policy(table: string, rows: string): string {
  return `
  alter table ${table} enable row level security;
  create policy ${table}_of_node on ${table}
    using ((select muster_node()) is null or ${rows})
    with check ((select muster_node()) is null or ${rows});`
}

export const statements = `
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
    clock_offset_ms double precision
  );

  create function muster_node() returns text
    language sql stable security definer set search_path from current
    as $$ select node_id from node_links where database_role = session_user::text $$;

  create function muster_region() returns text
    language sql stable security definer set search_path from current
    as $$ select region from nodes where node_id = muster_node() $$;

  ${policy('lobby_runs', 'runner_id = (select muster_node())')}
  create policy lobby_runs_started_by_node on lobby_runs as restrictive for insert
    with check ((select muster_node()) is null or exists (
      select from lobbies where lobbies.lobby_id = lobby_runs.lobby_id
    ));
  ${policy('runners', 'runner_id = (select muster_node())')}
  ${policy('lobbies', OWN_LOBBIES)}
  ${policy('lobby_usage', OWN_RUNS)}
  ${policy('lobby_traffic', OWN_RUNS)}
  ${policy('log_questions', 'runner_id = (select muster_node())')}
  ${policy('log_answers', 'question_id in (select question_id from log_questions)')}
  ${policy('job_runs', "role = 'runner'")}
  ${policy('ray_spans', "service = 'runner'")}
  ${policy('versions', 'version_id in (select version_id from lobbies where stop_ts is null)')}
`
