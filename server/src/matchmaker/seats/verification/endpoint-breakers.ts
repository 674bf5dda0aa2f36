// A circuit breaker for each namespace and endpoint of a game. While an endpoint keeps failing, requests for it are refused
// at once, except for a probe every OPEN_MS, until a probe gets a response.
import type { Context } from '../../../context.ts'
import { BoundedMap } from '../../../flow/bounded-map.ts'
import { CircuitBreaker } from '../../../outbound/circuit-breaker.ts'

/** Failures in a row after which an endpoint is no longer asked. */
const FAILURES_MAX = 5
/** The time between two probes. A recovered endpoint is noticed within this and its response time. */
const OPEN_MS = 2_000
/** Beyond it the breaker that was made first is removed. An endpoint that responds needs none. */
const BREAKERS_MAX = 10_000

export type EndpointCall = {
  is_probe: boolean
  /** Milliseconds until the endpoint may be asked; 0: now. Other calls may have failed since this one was admitted. */
  waitMs: () => number
  answered: () => void
  failed: () => void
}

export type EndpointBreakers = {
  /** Admits a call, or returns the milliseconds until the next one may be admitted. */
  enter: (namespace_id: string, url: string) => EndpointCall | number
  countRefused: () => void
}

export function createEndpointBreakers(ctx: Pick<Context, 'log' | 'elapsed' | 'metrics'>): EndpointBreakers {
  const breakers = new BoundedMap<string, CircuitBreaker>(BREAKERS_MAX)
  const ends = { answered: 0, failed: 0, not_asked: 0 }
  ctx.metrics.sum(
    'verification_calls_total',
    'Calls to the verification endpoints of games, by result.',
    ['end'],
    (set) => {
      for (const [end, count] of Object.entries(ends)) set(count, end)
    },
  )
  ctx.metrics.gauge(
    'verification_endpoints_left_alone',
    'Endpoints of games that are not asked because they keep failing.',
    [],
    (set) => set([...breakers.values()].filter((breaker) => breaker.isOpen()).length),
  )

  return {
    enter(namespace_id, url) {
      const key = `${namespace_id} ${url}`
      const breaker = breakers.getOr(
        key,
        () => new CircuitBreaker({ failures_max: FAILURES_MAX, open_ms: OPEN_MS }, ctx.elapsed),
      )
      const is_probe = breaker.isOpen()
      const call = breaker.enter()
      if (call === null) return breaker.waitMs()
      return {
        is_probe,
        waitMs: () => breaker.waitMs(),
        answered() {
          ends.answered++
          if (call.succeeded()) ctx.log.info({ namespace_id }, 'the verification endpoint of a game responds again')
          if (breakers.get(key) === breaker) breakers.delete(key)
        },
        failed() {
          ends.failed++
          if (call.failed())
            ctx.log.warn({ namespace_id }, 'the verification endpoint of a game keeps failing; it is not asked for now')
        },
      }
    },
    countRefused() {
      ends.not_asked++
    },
  }
}
