// Providers of sign-ins by OpenID Connect, the accounts of people there, and the sign-ins that were completed. A user may now
// have neither an e-mail address nor an access token.
export const statements = `
  create table sign_in_providers (
    provider_id uuid primary key,
    name text not null unique,
    title text not null,
    issuer text not null,
    client_id text not null,
    client_secret text,
    settings jsonb not null,
    create_ts timestamptz(3) not null
  );

  create table provider_accounts (
    issuer text not null,
    subject text not null,
    user_id uuid not null references users on delete cascade,
    email text,
    create_ts timestamptz(3) not null,
    sign_in_ts timestamptz(3) not null,
    primary key (issuer, subject)
  );
  create index provider_accounts_by_user on provider_accounts (user_id);

  create table spent_sign_ins (
    state_hash bytea primary key,
    expire_ts timestamptz(3) not null
  );
  create index spent_sign_ins_by_expiry on spent_sign_ins (expire_ts);

  alter table users drop constraint if exists users_check;
  alter table user_sessions add column provider_id uuid, add column provider_subject text,
    add column provider_sid text, add column is_admin boolean not null default false, add column end_by_ts timestamptz(3);
  create index user_sessions_by_provider on user_sessions (provider_id, provider_subject) where provider_id is not null;
  alter table group_members add column provider_id uuid;
`
