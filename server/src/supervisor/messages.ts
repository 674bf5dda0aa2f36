// The messages between the supervisor and a role process over the IPC channel. Either side may be older or broken, so each
// message is validated.
import { ROLES, type Role } from '../config/roles.ts'

/** Time of a role's stop, with the end of its lobbies. Then the role exits. The supervisor waits a little longer. */
export const STOP_MS_MAX = 20_000

/** From a role process: it is ready, or its start failed for `reason`, one sentence. */
export type RoleMessage =
  | { kind: 'ready'; role: Role; address: string | null }
  | { kind: 'failed'; reason: string }
  | { kind: 'staying' }

/**
 * From the supervisor. A closed channel has the effect of `stop` with `end_lobbies: false`, unless the role has received
 * `stay`: then it runs until a signal or its successor ends it, and writes its log to the file.
 */
export type SupervisorMessage = { kind: 'stop'; end_lobbies: boolean } | { kind: 'stay'; log_path: string }

/** Null when it is not a message of a role. */
export function parseRoleMessage(value: unknown): RoleMessage | null {
  if (!isRecord(value)) return null
  const role = ROLES.find((item) => item === value.role)
  const { kind, address, reason } = value
  if (kind === 'ready' && role && (typeof address === 'string' || address === null)) return { kind, role, address }
  if (kind === 'failed' && typeof reason === 'string') return { kind, reason }
  if (kind === 'staying') return { kind }
  return null
}

/** Null when it is not a message of the supervisor. */
export function parseSupervisorMessage(value: unknown): SupervisorMessage | null {
  if (!isRecord(value)) return null
  const { kind, end_lobbies, log_path } = value
  if (kind === 'stop' && typeof end_lobbies === 'boolean') return { kind, end_lobbies }
  return kind === 'stay' && typeof log_path === 'string' ? { kind, log_path } : null
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
