// Whether a deploy was a rollback: then the deploy before it is marked as rolled back.
export const statements = `
  alter table namespace_versions add column is_rollback boolean not null default false;
`
