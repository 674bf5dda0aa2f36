// What a lobby may use, from its first moment on: its tier, and what the tier said then.
export const statements = `
  alter table lobbies
    add column tier text not null default 'basic-1d1',
    add column cpu_cores double precision not null default 1,
    add column memory_mb integer not null default 1024;
`
