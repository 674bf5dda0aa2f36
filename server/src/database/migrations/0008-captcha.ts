// Secrets of versions, sealed; clients that have solved a captcha; and the responses that were used for it.
export const statements = `
  alter table versions add column secrets text;

  create table captcha_clients (
    namespace_id uuid not null,
    client text not null,
    shard smallint not null,
    verify_ts timestamptz(3) not null,
    expire_ts timestamptz(3) not null,
    request_count integer not null,
    primary key (namespace_id, client)
  );
  create index on captcha_clients (shard);
  create index on captcha_clients (expire_ts);

  create table captcha_claims (
    response_hash bytea primary key,
    claimed_by bytea not null,
    is_answered boolean not null default false,
    expire_ts timestamptz(3) not null
  );
  create index on captcha_claims (expire_ts);
`
