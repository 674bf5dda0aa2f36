// Users of sites that ask for a password, and what was deployed to a namespace when. Namespaces that are there begin
// their history with the version they are on.
export const statements = `
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
    caller_name text
  );
  create index on namespace_versions (namespace_id, deploy_number);
  create index on namespace_versions (version_id);

  insert into namespace_versions (deploy_id, namespace_id, version_id, deploy_ts, caller_kind)
    select gen_random_uuid(), namespace_id, version_id, create_ts, 'admin' from namespaces;
`
