// Who set the value of a secret last. Secrets set before this have nobody. `creator_user_id` refers to nothing: a secret
// outlives its user.
export const statements = `
  alter table game_secrets add column creator_kind text;
  alter table game_secrets add column creator_name text;
  alter table game_secrets add column creator_user_id uuid;
`
