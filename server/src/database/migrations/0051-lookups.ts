// What people look up: the seats of an identity, and the audit events of a ray, an address or an actor.
export const statements = `
  create index on players (identity_id, create_ts) where identity_id is not null;
  create index on audit_events (ray_id);
  create index on audit_events (client_ip, event_id);
  create index on audit_events (user_id, event_id) where user_id is not null;
  create index on audit_events (token_id, event_id) where token_id is not null;
`
