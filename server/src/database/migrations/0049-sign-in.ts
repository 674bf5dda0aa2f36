// From where a session was last used, for the person who looks through the own sessions. And links that sign an administrator
// in once: the table has their hashes only.
export const statements = `
  alter table user_sessions add column client_ip text, add column user_agent text;

  create table sign_in_links (
    link_hash bytea primary key,
    access_name text not null,
    access_token_id uuid,
    create_ts timestamptz(3) not null,
    expire_ts timestamptz(3) not null,
    use_ts timestamptz(3)
  );
  create index on sign_in_links (expire_ts);
`
