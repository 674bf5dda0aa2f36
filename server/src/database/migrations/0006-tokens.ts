// The tokens that were given out, without the tokens themselves, and those that were taken back; what a lobby may use.
export const statements = `
  create table tokens (
    token_id uuid primary key,
    kind text not null,
    game_id uuid not null references games on delete cascade,
    namespace_id uuid references namespaces on delete cascade,
    create_ts timestamptz(3) not null,
    expire_ts timestamptz(3)
  );
  create index on tokens (game_id, kind, create_ts);

  create table revoked_tokens (
    token_id uuid primary key,
    revoke_ts timestamptz not null default clock_timestamp()
  );
  create index on revoked_tokens (revoke_ts);
`
