// The audit log. It refers to groups, games and users by id only: an event outlives what it is about.
export const statements = `
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
`
