// Names of versions that were given out before the versions were made.
export const statements = `
  alter table games add column version_number bigint not null default 0;
`
