// What the api asks runners of other machines about the logs of lobbies, and what they answer (server/src/lobby-logs/remote.ts).
// Without a log: it lives for seconds, and whoever asked before a crash asks again.
export const statements = `
  create unlogged table log_questions (
    question_id uuid primary key,
    lobby_id uuid not null,
    runner_id text not null,
    question jsonb not null,
    ask_ts timestamptz(3) not null default now()
  );
  create unlogged table log_answers (
    question_id uuid primary key references log_questions on delete cascade,
    answer text not null
  );
`
