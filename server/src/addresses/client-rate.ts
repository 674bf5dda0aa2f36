// How often a client may ask, with a /56 and a /48 of IPv6 counted too: otherwise one subscriber has as many limits as
// there are /64 in the network that was given to it.
import { clientNetworks, NETWORK_FACTORS } from './client-networks.ts'
import { createRateLimiter, PER_MINUTE_MAX, type RateLimiter } from './rate-limit.ts'

/** As createRateLimiter(), for keys that clientKey() returns. Any other key has the limit of one client. */
export function createClientRateLimiter(options: {
  per_minute: number
  burst?: number
  keys_max: number
}): RateLimiter {
  const { per_minute, burst = per_minute, keys_max } = options
  const limiters = new Map(
    NETWORK_FACTORS.map((factor) => {
      const [many_a_minute, many_at_once] = [per_minute, burst].map((count) => Math.min(count * factor, PER_MINUTE_MAX))
      return [factor, createRateLimiter({ per_minute: many_a_minute!, burst: many_at_once!, keys_max })]
    }),
  )
  return {
    take(client_key, now_ms) {
      // The smallest network first: what is refused there must not use up what the larger one has for others.
      for (const { key, factor } of clientNetworks(client_key)) {
        const wait_ms = limiters.get(factor)!.take(key, now_ms)
        if (wait_ms > 0) return wait_ms
      }
      return 0
    },
    waitMs: (client_key, now_ms) =>
      Math.max(...clientNetworks(client_key).map(({ key, factor }) => limiters.get(factor)!.waitMs(key, now_ms))),
    size: () => [...limiters.values()].reduce((sum, limiter) => sum + limiter.size(), 0),
  }
}
