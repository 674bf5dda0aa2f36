// Custom domains of namespaces. `verification_errors` has a readable line for each thing that is wrong.
export const statements = `
  create table domains (
    domain_id uuid primary key,
    namespace_id uuid not null references namespaces on delete cascade,
    domain text not null,
    create_ts timestamptz(3) not null default now(),
    verification_status text not null,
    nonce text not null,
    cname_label text not null unique,
    verification_errors jsonb not null default '[]',
    failure_count integer not null default 0,
    verify_ts timestamptz(3),
    unique (namespace_id, domain)
  );
  create unique index domains_active on domains (domain) where verification_status = 'active';
`
