// What the removal of old rows looks for. Runs say by themselves what they used, because they are kept longer than
// their lobbies, and which build they run on, so that a runner that finds one again does not remove it.
export const statements = `
  create table journal_readers (
    shard smallint not null,
    reader text not null,
    read_seq bigint not null,
    primary key (shard, reader)
  );

  alter table revoked_tokens add column expire_ts timestamptz(3);
  update revoked_tokens set expire_ts = tokens.expire_ts from tokens where tokens.token_id = revoked_tokens.token_id;
  create index on revoked_tokens (expire_ts) where expire_ts is not null;
  create index on tokens (expire_ts) where expire_ts is not null;
  create index on user_sessions (expire_ts);
  create index on user_sessions (end_ts) where end_ts is not null;
  create index on group_invites (expire_ts);

  alter table lobby_runs
    add column namespace_id uuid,
    add column region text,
    add column cpu_cores double precision,
    add column build_id uuid;
  update lobby_runs set namespace_id = lobbies.namespace_id, region = lobbies.region, cpu_cores = lobbies.cpu_cores
    from lobbies where lobbies.lobby_id = lobby_runs.lobby_id;
`
