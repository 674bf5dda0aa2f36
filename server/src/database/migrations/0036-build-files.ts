// The files of a build's archive, by which a version's program is checked. Of builds that are complete already nobody knows.
export const statements = `
  alter table builds add column file_list text;
`
