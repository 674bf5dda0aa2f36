// Identities of games' players, and which lobby was created by whom.
export const statements = `
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

  alter table lobbies add column creator_identity_id uuid;
`
