// `content_encoding`: `br` or `gzip` where the first bytes of a file of a site say so, and its name does not (`x.wasm.unityweb`).
export const statements = `
  alter table upload_files add column content_encoding text;
`
