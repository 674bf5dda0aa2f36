// The order in which explanations were written, which a feed continues from. A request is written when it ends, so the time of
// its beginning is no such order.
export const statements = `
  alter table explanations add column explanation_seq bigint generated always as identity;
  create index on explanations (namespace_id, explanation_seq);
`
