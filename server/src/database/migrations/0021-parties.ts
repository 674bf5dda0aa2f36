// Parties, and the seats that they take together.
export const statements = `
  create table parties (
    party_id uuid primary key,
    namespace_id uuid not null,
    shard smallint not null,
    code text not null,
    leader_identity_id uuid not null,
    members jsonb not null,
    revision integer not null,
    create_ts timestamptz(3) not null,
    expire_ts timestamptz(3) not null,
    end_ts timestamptz(3)
  );
  create index on parties (shard) where end_ts is null;
  create index on parties (end_ts);

  alter table players add column identity_id uuid, add column leader_player_id uuid;
`
