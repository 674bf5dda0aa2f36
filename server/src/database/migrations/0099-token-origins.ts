// What people call a token, who created it, and when it was last used. Tokens before this have none of it. `creator_user_id`
// refers to nothing: a token outlives its user.
export const statements = `
  alter table tokens add column name text;
  alter table tokens add column creator_kind text;
  alter table tokens add column creator_name text;
  alter table tokens add column creator_user_id uuid;
  alter table tokens add column use_ts timestamptz(3);
`
