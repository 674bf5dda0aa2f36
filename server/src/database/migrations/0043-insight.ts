// What people search for: the players of a client, the lobby that a request started, and the requests about a player.
export const statements = `
  alter table ray_spans add column player_id uuid;
  create index on ray_spans (player_id, ts) where player_id is not null;

  create index on players (client, namespace_id, create_ts);
  create index on lobbies (ray_id) where ray_id is not null;
`
