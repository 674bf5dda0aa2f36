// Builds that are container images: how the image starts, as its checked config says.
export const statements = `
  alter table builds add column image jsonb;
`
