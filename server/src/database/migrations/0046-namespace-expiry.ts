// When a namespace is deleted without a request; null: never. Namespaces before this do not expire.
export const statements = `
  alter table namespaces add column expire_ts timestamptz;
  create index on namespaces (expire_ts) where expire_ts is not null;
`
