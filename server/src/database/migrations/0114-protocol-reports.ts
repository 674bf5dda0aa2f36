// What the server of a lobby reported of itself in the protocol of another platform.
export const statements = `
  alter table lobby_runs add column protocol_report jsonb;
`
