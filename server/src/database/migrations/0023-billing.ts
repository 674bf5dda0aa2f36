// Whose a run was when it began, for the bill: it is kept when its namespace, and even its game, is gone.
export const statements = `
  alter table lobby_runs
    add column game_id uuid,
    add column group_id uuid;
  update lobby_runs set game_id = games.game_id, group_id = games.developer_group_id
    from namespaces join games on games.game_id = namespaces.game_id
    where namespaces.namespace_id = lobby_runs.namespace_id;
  create index on lobby_runs (group_id, exit_ts) include (start_ts, game_id, region, cpu_cores);
`
