// The roles of the platform: each is a process of its own under `npm start`.

/** In the order in which they start; they stop in the reverse order. */
export const ROLES = ['api', 'matchmaker', 'runner', 'edge'] as const
export type Role = (typeof ROLES)[number]

/**
 * Flags of Node for the process of a role. V8 never gives back the memory of a young generation that has grown.
 *
 * - edge: many connections stay open for long. A small young generation costs 13.8 instead of 17.5 KB for an idle
 *   WebSocket among 9,000, at the same speed.
 * - api and runner: they are idle most of the time.
 */
export const ROLE_FLAGS: Readonly<Record<Role, readonly string[]>> = {
  api: youngGeneration(4),
  matchmaker: [],
  runner: youngGeneration(2),
  edge: youngGeneration(4),
}

/** It has its size from the start: V8 would begin with a smaller one, and collect it many times while the modules load. */
function youngGeneration(mb: number): string[] {
  return [`--min-semi-space-size=${mb}`, `--max-semi-space-size=${mb}`]
}
