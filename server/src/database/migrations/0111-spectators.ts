// Seats of spectators, who count in no limit of players.
export const statements = `
  alter table lobbies add column max_spectators integer not null default 0;
  alter table players add column is_spectator boolean not null default false;
`
