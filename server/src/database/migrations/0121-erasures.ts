// Records of erasures of players. They name no person: a keyed hash finds the record of a player.
export const statements = `
  create table erasures (
    erasure_id uuid primary key,
    game_id uuid not null references games (game_id) on delete cascade,
    subject_hashes text[] not null,
    begin_ts timestamptz(3) not null,
    end_ts timestamptz(3),
    counts jsonb not null,
    left_over jsonb not null
  );
  create index erasures_by_game on erasures (game_id, begin_ts);
`
