// Servers that do not answer: since when, as their runner sees it; and that their lobbies take nobody meanwhile.
export const statements = `
  alter table lobby_runs add column stall_ts timestamptz;
  alter table lobbies add column is_stalled boolean not null default false;
`
