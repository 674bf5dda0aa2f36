// Ratings of identities by game mode, and the results that changed them. A result is remembered so that a repeated call rates
// nothing again; it names players, who are seats, and no identity.
export const statements = `
  create table ratings (
    namespace_id uuid not null references namespaces on delete cascade,
    game_mode text collate "C" not null,
    identity_id uuid not null references identities on delete cascade,
    mu double precision not null,
    sigma double precision not null,
    matches integer not null,
    update_ts timestamptz(3) not null,
    primary key (namespace_id, game_mode, identity_id)
  );
  create index ratings_identity on ratings (identity_id);
  create index ratings_ordinal on ratings (namespace_id, game_mode, (mu - 3 * sigma), identity_id);
  create table rating_results (
    lobby_id uuid not null,
    match_id text collate "C" not null,
    namespace_id uuid not null references namespaces on delete cascade,
    body_hash bytea not null,
    response text not null,
    create_ts timestamptz(3) not null,
    primary key (lobby_id, match_id)
  );
  create index rating_results_namespace on rating_results (namespace_id);
  create index rating_results_create_ts on rating_results (create_ts);
`
