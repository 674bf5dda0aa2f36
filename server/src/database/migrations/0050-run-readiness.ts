// Servers that never call ready: what shows that they are, and when the runner saw it.
export const statements = `
  alter table lobby_runs add column ready_check jsonb;
  alter table lobby_runs add column seen_ready_ts timestamptz;
`
