// Which person deployed. Deploys before this, and those by tokens, have none. It refers to nothing: a deploy outlives its user.
export const statements = `
  alter table namespace_versions add column caller_user_id uuid;
`
