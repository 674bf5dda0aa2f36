// Contents that a group stores are found by their hash. `expected_sha256`: what the sender announced, null without.
export const statements = `
  alter table upload_files add column expected_sha256 text;
  create index upload_files_sha256_index on upload_files (sha256, content_length) where sha256 is not null and not is_packed;
`
