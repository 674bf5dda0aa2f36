// Until when the server of a lobby asked that the lobby does not end as idle.
export const statements = `
  alter table lobbies add column keep_until_ts timestamptz(3);
`
