// People: who logs in, what they are members of, and how a program is let in by one of them.
export const statements = `
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
    end_ts timestamptz(3)
  );
  create index on user_sessions (user_id, refresh_ts);

  create table email_verifications (
    verification_id uuid primary key,
    email text not null,
    client text not null,
    code_hash bytea not null,
    attempt_count integer not null default 0,
    create_ts timestamptz(3) not null,
    expire_ts timestamptz(3) not null,
    complete_ts timestamptz(3)
  );
  create index on email_verifications (email, create_ts);
  create index on email_verifications (client, create_ts);
  create index on email_verifications (create_ts);

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

  create table device_links (
    device_link_id uuid primary key,
    game_id uuid not null references games on delete cascade,
    complete_ts timestamptz(3) not null
  );
  create index on device_links (complete_ts);
`
