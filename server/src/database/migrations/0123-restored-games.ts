// A restore of one game has no folder: it goes into the platform that runs.
export const statements = `
  alter table restores alter column folder drop not null;
  alter table restores add column game text;
`
