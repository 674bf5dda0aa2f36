// `is_packed`: the platform made the file from the one whose path has no .br or .gz at its end. It is no path of the site.
export const statements = `
  alter table upload_files add column is_packed boolean not null default false;
`
