// Certificates by ACME. The edge writes a row when a host is first visited; the api orders, and writes what came of it.
// Private keys are sealed. `acme_orders` is what the budgets are counted by.
export const statements = `
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
  create table acme_accounts (directory_url text primary key, private_key text not null);
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
`
