// Where a server that is not ready listens, for the error of the request that waits for it.
export const statements = `
  alter table lobby_runs add column listening jsonb;
`
