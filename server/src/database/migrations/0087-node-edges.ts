// Edges of joined nodes, and the addresses at which edges are public. Each edge records its own tcp and udp ports. A port with an
// empty node is of a release before; the platform's own edge takes it over. The policies of an edge are added to those of 0070:
// a row is visible when any policy allows it.
const OWN_EDGE = "(node_id = (select muster_node()) or starts_with(node_id, (select muster_node()) || '~'))"
const EDGE = "(select muster_has_role('edge'))"

function edgePolicy(table: string, rows: string): string {
  const allowed = `(select muster_node()) is null or (${EDGE} and ${rows})`
  return `
  alter table ${table} enable row level security;
  create policy ${table}_of_node on ${table} using (${allowed}) with check (${allowed});`
}

const OF_OWN_EDGE = 'edge_id in (select edge_id from edges)'

export const statements = `
  alter table edges add column public_host text;
  alter table edges add column http_port integer;
  alter table edges add column https_port integer;

  alter table edge_ports add column node_id text not null default '';
  alter table edge_ports drop constraint edge_ports_pkey;
  alter table edge_ports add primary key (node_id, transport, port);

  create function muster_has_role(wanted text) returns boolean
    language sql stable security definer set search_path from current
    as $$ select exists (select from nodes where node_id = muster_node() and wanted = any(roles)) $$;

  create policy lobbies_of_edge on lobbies for select using (${EDGE});
  create policy lobby_runs_of_edge on lobby_runs for select using (${EDGE});
  create policy versions_of_edge on versions for select using (${EDGE});
  create policy lobby_traffic_of_edge on lobby_traffic using (${EDGE}) with check (${EDGE});
  create policy ray_spans_of_edge on ray_spans for insert with check (${EDGE} and service = 'edge');

  ${edgePolicy('edges', OWN_EDGE)}
  ${edgePolicy('edge_reports', OF_OWN_EDGE)}
  ${edgePolicy('lobby_connections', OF_OWN_EDGE)}
  ${edgePolicy('edge_players', OF_OWN_EDGE)}
  ${edgePolicy('edge_admissions', OF_OWN_EDGE)}
  ${edgePolicy('edge_ports', 'node_id = (select muster_node())')}
`
