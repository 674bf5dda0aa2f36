// Secrets of games: variables of their lobbies, sealed. A row without a namespace holds in all namespaces of the game.
export const statements = `
  create table game_secrets (
    secret_id uuid primary key,
    game_id uuid not null references games on delete cascade,
    namespace_id uuid references namespaces on delete cascade,
    name text collate "C" not null,
    value text not null,
    byte_count integer not null,
    update_ts timestamptz(3) not null
  );
  create unique index game_secrets_of_games on game_secrets (game_id, name) where namespace_id is null;
  create unique index game_secrets_of_namespaces on game_secrets (namespace_id, name) where namespace_id is not null;
  create index game_secrets_by_game on game_secrets (game_id);
`
