// The name of a process of the platform in pg_stat_activity: its roles, when it started, and a key of its node. The id of a node
// may be longer than PostgreSQL's 63 bytes, so the key is the start of its hash. Example: `muster api,edge 1795845600 9f86d081`.
import { createHash } from 'node:crypto'

const NODE_KEY_DIGITS = 8
const FORM = /^muster ([a-z,]+) ([0-9]{1,12}) ([0-9a-f]{8})$/

export type ProcessName = { roles: string[]; start_ms: number; node_key: string }

export function processName(roles: readonly string[], node_id: string): string {
  return `muster ${roles.join(',')} ${Math.floor(performance.timeOrigin / 1_000)} ${nodeKey(node_id)}`
}

export function nodeKey(node_id: string): string {
  return createHash('sha256').update(node_id).digest('hex').slice(0, NODE_KEY_DIGITS)
}

/** Null for a command, such as `muster backup`. */
export function readProcessName(application_name: string): ProcessName | null {
  const [, roles, start_s, node_key] = FORM.exec(application_name) ?? []
  if (roles === undefined || node_key === undefined) return null
  return { roles: roles.split(','), start_ms: Number(start_s) * 1_000, node_key }
}
