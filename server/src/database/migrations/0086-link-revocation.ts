// A removed node's link is revoked for good. A database role of a joined node that is not that of a valid link sees no row:
// until now `muster_node()` was null for it, as it is for the platform's own roles, which see all rows. PostgreSQL shows the
// user of a session as `unknown (OID=...)` once the role was dropped.
//
// A node also reads the deployed versions that may run in its region, to unpack their builds ahead.
export const statements = `
  alter table node_links add column revoke_ts timestamptz(3);
  update node_links set revoke_ts = removed_ts from nodes
    where nodes.node_id = node_links.node_id and removed_ts is not null;

  create or replace function muster_node() returns text
    language sql stable security definer set search_path from current
    as $$
      select coalesce(
        (select node_id from node_links where database_role = session_user::text and revoke_ts is null),
        case when session_user::text ~ '^(muster_node_|unknown )' then '' end
      )
    $$;

  create function muster_runs_in(config jsonb, region text) returns boolean
    language sql immutable
    as $$
      select exists (
        select from jsonb_each(config #> '{matchmaker,game_modes}') as mode (name, members)
        where coalesce(members -> 'regions', config #> '{matchmaker,regions}', jsonb_build_object(region, 1)) ? region
      )
    $$;

  create policy versions_deployed on versions for select using (
    muster_runs_in(config, (select muster_region())) and version_id in (select version_id from namespaces)
  );
`
