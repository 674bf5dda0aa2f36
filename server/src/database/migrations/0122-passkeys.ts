// Passkeys of people, which passkey opened a session, and when a session was last confirmed with one.
export const statements = `
  create table passkeys (
    passkey_id uuid primary key,
    user_id uuid not null references users on delete cascade,
    credential_id bytea not null unique,
    public_key bytea not null,
    sign_count bigint not null,
    transports text[] not null,
    name text not null,
    access_token_id uuid,
    signs_in boolean not null,
    create_ts timestamptz(3) not null,
    use_ts timestamptz(3)
  );
  create index passkeys_by_user on passkeys (user_id);

  alter table user_sessions add column passkey_id uuid, add column confirm_ts timestamptz(3);
  create index user_sessions_by_passkey on user_sessions (passkey_id) where passkey_id is not null;
`
