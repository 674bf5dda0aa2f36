// Login codes are counted by all networks of the client that asks (addresses/client-networks.ts), not by its address alone.
export const statements = `
  alter table email_verifications add column networks text[] not null default '{}';
  update email_verifications set networks = array[client];
  create index on email_verifications using gin (networks);
`
