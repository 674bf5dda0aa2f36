// Versions that a part of the clients of a namespace gets, and the finds for both versions while that lasts.
export const statements = `
  create table rollouts (
    rollout_id uuid primary key,
    namespace_id uuid not null references namespaces on delete cascade,
    version_id uuid not null references versions on delete cascade,
    deployed_version_id uuid not null references versions on delete cascade,
    percent smallint not null,
    failed_lobbies_percent_max smallint,
    refused_finds_percent_max smallint,
    begin_ts timestamptz(3) not null,
    end_ts timestamptz(3),
    outcome text,
    reason text
  );
  create index rollouts_by_namespace on rollouts (namespace_id, begin_ts);
  create unique index rollouts_under_way on rollouts (namespace_id) where end_ts is null;
  create index rollouts_by_version on rollouts (version_id);
  create index rollouts_by_deployed_version on rollouts (deployed_version_id);

  create table rollout_finds (
    rollout_id uuid not null references rollouts on delete cascade,
    version_id uuid not null,
    find_count bigint not null,
    refused_count bigint not null,
    primary key (rollout_id, version_id)
  );
`
