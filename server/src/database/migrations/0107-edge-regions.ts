// Where an edge stands, and its echo: a client measures its latency to a region at the edges of the region. Null: an edge of a
// version before, or without an echo.
export const statements = `
  alter table edges add column regions text[];
  alter table edges add column ping_port integer;
`
