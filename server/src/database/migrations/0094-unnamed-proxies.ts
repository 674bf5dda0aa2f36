// The last proxy in front of an edge that the operator has not named, and when its requests arrived.
export const statements = `
  alter table edges add column unnamed_proxy text;
  alter table edges add column unnamed_proxy_ts timestamptz;
`
