// The host that a development token names. It counts as a host of the namespace; that of older tokens is not known.
export const statements = `
  alter table tokens add column hostname text;
  create index on tokens (namespace_id, hostname) where hostname is not null;
`
