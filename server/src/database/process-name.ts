// The name of a process of the platform in pg_stat_activity: its roles, its number where it is not the first process of its role,
// when it started, and a key of its node. The id of a node may be longer than PostgreSQL's 63 bytes, so the key is the start of its
// hash. Examples: `muster api,edge 1795845600 9f86d081`, `muster matchmaker#1 1795845600 9f86d081`.
import { createHash } from 'node:crypto'

const NODE_KEY_DIGITS = 8
const FORM = /^muster ([a-z,]+)(?:#([0-9]{1,2}))? ([0-9]{1,12}) ([0-9a-f]{8})$/

/** `number`: of the process among those of its role on the node. */
export type ProcessName = { roles: string[]; number: number; start_ms: number; node_key: string }

export function processName(roles: readonly string[], node_id: string, number = 0): string {
  const numbered = number === 0 ? '' : `#${number}`
  return `muster ${roles.join(',')}${numbered} ${Math.floor(performance.timeOrigin / 1_000)} ${nodeKey(node_id)}`
}

export function nodeKey(node_id: string): string {
  return createHash('sha256').update(node_id).digest('hex').slice(0, NODE_KEY_DIGITS)
}

/** Null for a command, such as `muster backup`. */
export function readProcessName(application_name: string): ProcessName | null {
  const [, roles, number = '0', start_s, node_key] = FORM.exec(application_name) ?? []
  if (roles === undefined || node_key === undefined) return null
  return { roles: roles.split(','), number: Number(number), start_ms: Number(start_s) * 1_000, node_key }
}
