// A guest that never came back and never played has `seen_ts` = `create_ts`, and is forgotten early. Those that are there
// already were made when playing was not noted: they count as used.
export const statements = `
  update identities set seen_ts = create_ts + interval '1 millisecond' where seen_ts = create_ts;
  create index on identities (create_ts) where seen_ts = create_ts;
  create index on identities (namespace_id, create_ts) where seen_ts = create_ts;
`
