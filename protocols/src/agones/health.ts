// Health of an Agones game server: the server pings, and a look once a period counts the periods without a ping. Each look
// counts at most one miss, so that a pause of this process does not make the server unhealthy.

export type HealthRules = { initial_delay_ms: number; period_ms: number; failure_threshold: number }

/** The defaults of Agones. */
export const HEALTH_RULES: HealthRules = { initial_delay_ms: 5000, period_ms: 5000, failure_threshold: 3 }

/** `since_ts`: the last ping, or the end of the initial delay. */
export type Health = { since_ts: number; ping_ts: number | null; misses: number; look_ts: number }

export function startHealth(rules: HealthRules, start_ts: number): Health {
  const first_ts = start_ts + rules.initial_delay_ms
  return { since_ts: first_ts, ping_ts: null, misses: 0, look_ts: first_ts }
}

export function ping(health: Health, now: number): Health {
  return { ...health, since_ts: Math.max(health.since_ts, now), ping_ts: now, misses: 0 }
}

/** A look before its time changes nothing. */
export function look(rules: HealthRules, health: Health, now: number): Health {
  if (now < health.look_ts) return health
  const is_miss = now - health.since_ts >= rules.period_ms
  return { ...health, misses: is_miss ? health.misses + 1 : 0, look_ts: now + rules.period_ms }
}

export function isUnhealthy(rules: HealthRules, health: Health): boolean {
  return health.misses >= rules.failure_threshold
}
