// The number of a process among those of its role on its node.
export const statements = `
  alter table matchmakers add column process smallint not null default 0;
  alter table edges add column process smallint not null default 0;
`
