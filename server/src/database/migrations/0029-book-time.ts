// Until when the books of the matchmaker were served, in book time: one row, written every second by the process whose
// name is in it.
export const statements = `
  create table book_time (
    singleton boolean primary key default true check (singleton),
    writer uuid not null,
    served_ms bigint
  )`
