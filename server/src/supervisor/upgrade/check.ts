// Whether this program may follow the one that runs: the versions of all nodes, and the migrations that would run. Nothing is
// changed.
import type { Kysely } from 'kysely'
import { sql } from 'kysely'
import { StartError } from '../../config/start-error.ts'
import { isAdditive } from '../../database/additive.ts'
import { MIGRATIONS } from '../../database/migrations/index.ts'
import type { Schema } from '../../database/schema.ts'
import { thisProgram, workTogether } from '../../wire/compatibility.ts'
import type { HolderProgram } from '../lock.ts'

/** A node whose roles have not reported for this long is not counted. */
const SEEN_S_MAX = 30

/** `wire_version`: null for a joined node, which its own link checks. */
export type NodeProgram = { node_id: string; version: string; wire_version: number | null }

/** Throws a StartError with the reason and the remedy. */
export function requireFollowing(running: HolderProgram): void {
  const next = thisProgram()
  if (running.wire_version > next.wire_version) {
    throw new StartError(
      `The platform runs ${running.version}, which is newer than ${next.version}. Databases only migrate forward: restore a backup to go back.`,
    )
  }
  if (!workTogether(running.wire_version, next.wire_version)) {
    throw new StartError(
      `${next.version} is too far from ${running.version}, which runs. Upgrade to a version between them first, or stop every node, and start it with ${next.version}.`,
    )
  }
}

/** Returns how many migrations will run. Throws a StartError when one of them is more than an addition. */
export async function requireAdditive(db: Kysely<Schema>): Promise<number> {
  const { rows } = await sql<{ name: string }>`select name from migrations`.execute(db)
  const pending = MIGRATIONS.filter(({ name }) => !rows.some((row) => row.name === name))
  const change = pending.find(({ statements }) => !isAdditive(statements))
  if (change === undefined) return pending.length
  throw new StartError(
    `The migration ${change.name} changes tables that the running version uses. Make a backup, stop every node, and start it with ${thisProgram().version}.`,
  )
}

/** Throws a StartError that names a node whose version cannot run beside this one. */
export function requireNodesTogether(nodes: readonly NodeProgram[]): void {
  const { version, wire_version } = thisProgram()
  const far = nodes.find((node) => node.wire_version !== null && !workTogether(node.wire_version, wire_version))
  if (far === undefined) return
  throw new StartError(
    `The node ${far.node_id} runs ${far.version}, which cannot run beside ${version}. Upgrade that node to a version between them first.`,
  )
}

/** The nodes whose roles report, in the order of their names. */
export async function readNodePrograms(db: Kysely<Schema>): Promise<NodeProgram[]> {
  const { rows } = await sql<NodeProgram>`
    with seen as (
      select runner_id as node_id from runners where ts > now() - make_interval(secs => ${SEEN_S_MAX})
      union select node_id from edges union select node_id from matchmakers
    )
    select node_id, version, wire_version from node_versions where node_id in (select node_id from seen)
    union all
    select node_id, version, null from node_links where seen_ts > now() - make_interval(secs => ${SEEN_S_MAX})
    order by node_id`.execute(db)
  return rows
}
