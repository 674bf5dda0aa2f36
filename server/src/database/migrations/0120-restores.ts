// Restores that were asked for over the API. They make another platform, and change nothing of this one.
export const statements = `
  create table restores (
    restore_id uuid primary key,
    backup text not null,
    folder text not null,
    node_id text not null,
    begin_ts timestamptz(3) not null,
    end_ts timestamptz(3),
    failure text
  );
`
