// What a swarm may be, apart from its code, which is loaded only when it runs.
export const PATTERNS = ['idle', 'steady', 'burst'] as const
export type Pattern = (typeof PATTERNS)[number]

/** Bots of one swarm: each has a socket of this process. */
export const BOTS_MAX = 10_000
/** A swarm with a longer duration is refused. */
export const DURATION_MS_MAX = 60 * 60_000
