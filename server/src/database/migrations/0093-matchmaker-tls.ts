// Whether other machines reach the process over mutual TLS. The version before writes no value, and knows no TLS.
export const statements = `
  alter table matchmakers add column speaks_tls boolean not null default false;
`
