// Logos and banners of games.
export const statements = `
  create table game_images (
    game_id uuid not null references games on delete cascade,
    kind text not null,
    upload_id uuid not null unique references uploads on delete cascade,
    sha256 text not null,
    content_type text not null,
    width integer not null,
    height integer not null,
    primary key (game_id, kind)
  );
  create index on game_images (sha256);
`
