// The database role of a node. It may do what the roles of the node need, and nothing else. Row level security (migration
// 0070) limits it to the rows of its own node. The platform's own role owns the tables, so that the policies do not concern it.
import { randomBytes } from 'node:crypto'
import type { Pool, PoolClient } from 'pg'
import type { Context } from '../../context.ts'
import { DATABASE_ROLE } from '../../database/node-roles.ts'
import { inTransaction } from '../../database/transaction.ts'

/** Connections of one node: the pools of its roles, their listeners, and those of roles that take over. */
const CONNECTIONS_MAX = 48
const PASSWORD_BYTES = 32

/** What a runner does with each table. A table that is not listed is not visible to it. */
const RUNNER_GRANTS: readonly string[] = [
  'select on lobbies, lobby_traffic, builds, uploads, upload_files, damaged_objects',
  'select (version_id, game_id, display_name, config) on versions',
  'select (game_id, developer_group_id) on games',
  // Whether there are any; the platform opens them (POST /lobby-tokens).
  'select (game_id, namespace_id) on game_secrets',
  'select (namespace_id, name_id, version_id) on namespaces',
  'select (node_id, drain_ts, drain_at_match_end, drain_deadline_ts, removed_ts) on nodes',
  'select, insert, update on lobby_runs, job_runs',
  'select, insert, update, delete on lobby_usage, runners',
  'select, update on log_questions',
  'select, insert on log_answers',
  'insert on ray_spans',
]

/** What an edge does, beside it. Secrets of versions are not visible to it, and keys of certificates are sealed. */
const EDGE_GRANTS: readonly string[] = [
  'select on lobbies, lobby_runs, sites, uploads, upload_files, damaged_objects, game_images, domains, edge_admissions',
  'select on namespace_auth_users, acme_challenges, matchmakers, shard_leases, revoked_tokens',
  'select (version_id, game_id, display_name, config) on versions',
  'select (game_id, name_id) on games',
  'select (namespace_id, game_id, name_id, version_id, cdn_auth_type) on namespaces',
  'select (game_id, namespace_id, is_enabled, domain, view, view_seq) on status_pages',
  'select (rollout_id, namespace_id, version_id, percent, end_ts) on rollouts',
  'select (player_id, lobby_id, namespace_id, client, create_ts, remove_ts, is_spectator) on players',
  'select (node_id) on node_links',
  'select (host, chain, private_key), insert (host, wish_ts, next_ts) on certificates',
  'select, insert, update, delete on edges, edge_reports, lobby_connections, edge_players, edge_ports, lobby_traffic',
  'insert on ray_spans',
]

/** Random, because the roles of a PostgreSQL server are shared by all its databases. */
export function newRoleName(): string {
  return `${DATABASE_ROLE}${randomBytes(8).toString('hex')}`
}

/**
 * Makes the role where it is missing, gives it a new password, and grants what the node's roles need in this release. Returns
 * the password.
 */
export async function renewRole(pool: Pool, role: string, node_roles: readonly string[]): Promise<string> {
  const grants = [
    ...(node_roles.includes('runner') ? RUNNER_GRANTS : []),
    ...(node_roles.includes('edge') ? EDGE_GRANTS : []),
  ]
  const password = randomBytes(PASSWORD_BYTES).toString('base64url')
  await inTransaction(pool, async (client) => {
    const schema = await schemaOf(client)
    const name = client.escapeIdentifier(role)
    const { rowCount } = await client.query('select from pg_roles where rolname = $1', [role])
    if (rowCount === 0) await client.query(`create role ${name} noinherit`)
    await client.query(`alter role ${name} login connection limit ${CONNECTIONS_MAX} password '${password}'`)
    // PostgreSQL before 15 lets every role make tables there.
    await client.query(`revoke create on schema ${schema} from public`)
    await client.query(`grant usage on schema ${schema} to ${name}`)
    await client.query(`revoke all on all tables in schema ${schema} from ${name}`)
    for (const grant of grants) await client.query(`grant ${grant} to ${name}`)
  })
  return password
}

/** Drops the database roles of all nodes that were removed. */
export async function dropRevokedRoles({ pool, db }: Pick<Context, 'pool' | 'db'>): Promise<void> {
  const { rows } = await pool.query<{ node_id: string; database_role: string }>({
    name: 'revoked-links',
    text: 'select node_id, database_role from node_links where revoke_ts is not null and database_role is not null',
  })
  for (const { node_id, database_role } of rows) {
    await dropRole(pool, database_role)
    // The row stays: the node's runs are not on this machine. Another machine may have joined meanwhile.
    await db
      .updateTable('node_links')
      .set({ database_role: null })
      .where('node_id', '=', node_id)
      .where('database_role', '=', database_role)
      .execute()
    // No further report of its edge will come.
    await pool.query("delete from edges where node_id = $1 or starts_with(node_id, $1 || '~')", [node_id])
    await pool.query('delete from edge_ports where node_id = $1', [node_id])
  }
}

/** Takes everything from the role, also from its open connections, and removes it. Resolves also when it is gone. */
async function dropRole(pool: Pool, role: string): Promise<void> {
  await inTransaction(pool, async (client) => {
    const { rowCount } = await client.query('select from pg_roles where rolname = $1', [role])
    if (rowCount === 0) return
    const schema = await schemaOf(client)
    const name = client.escapeIdentifier(role)
    await client.query(`revoke all on all tables in schema ${schema} from ${name}`)
    await client.query(`revoke all on schema ${schema} from ${name}`)
    await client.query(`drop role ${name}`)
  })
}

async function schemaOf(client: PoolClient): Promise<string> {
  const { rows } = await client.query<{ name: string }>('select current_schema() as name')
  return client.escapeIdentifier(rows[0]!.name)
}
