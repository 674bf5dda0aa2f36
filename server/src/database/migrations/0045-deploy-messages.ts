// What the developer says about a deploy. Deploys before this have no message.
export const statements = `
  alter table namespace_versions add column message text;
`
