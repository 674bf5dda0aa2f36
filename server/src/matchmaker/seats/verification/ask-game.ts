// Calls to the verification endpoints of games. Endpoints are not trusted: their addresses are checked and pinned
// (outbound/safe-fetch.ts), and of a response the status is read, and where rules need it the body. Each namespace has a lane of its own, so a slow
// endpoint delays only its own players.
import { ApiError, type VerificationConfig } from '@musterhost/contract'
import type { Context } from '../../../context.ts'
import { createDns } from '../../../outbound/dns.ts'
import { FetchFailure, type FetchRules, safeFetch } from '../../../outbound/safe-fetch.ts'
import { webhookRules } from '../../../outbound/webhook-rules.ts'
import { createEndpointBreakers, type EndpointBreakers, type EndpointCall } from './endpoint-breakers.ts'

/** Calls of one namespace at the same time. */
const LANE_CALLS_MAX = 128
/** Requests of one namespace that wait for a call. */
const LANE_WAITING_MAX = 1_024
/** Calls of all namespaces at the same time. */
const CALLS_MAX = 4_096
/** A call with less time than this does not count against its endpoint when it gets no response. */
const FAIR_MS_MIN = 1_000

export type GameQuestion = {
  namespace_id: string
  endpoint: VerificationConfig
  body: string
  timeout_ms: number
  /** Aborted when no caller waits for the response any more. */
  signal: AbortSignal
  /** Bytes of the response's body that are read; 0: none. */
  body_bytes_max: number
  /** Called when the endpoint is not asked because it keeps failing. */
  onNotAsked: () => void
}

/**
 * Returns the body of the response, as far as it is read. Throws MATCHMAKER_VERIFICATION_FAILED when the endpoint refuses, MATCHMAKER_VERIFICATION_REQUEST_FAILED without a response
 * in time.
 */
export type AskGame = (question: GameQuestion) => Promise<string>

type GameResponse = { status: number; body: string }
type Lane = { call_count: number; waiting: Set<() => void> }

export function createAskGame(ctx: Pick<Context, 'config' | 'log' | 'elapsed' | 'metrics'>): AskGame {
  const calls = new EndpointCalls(ctx)
  return (question) => calls.ask(question)
}

class EndpointCalls {
  readonly #ctx: Pick<Context, 'log' | 'elapsed'>
  readonly #rules: FetchRules
  readonly #breakers: EndpointBreakers
  /** By namespace. */
  readonly #lanes = new Map<string, Lane>()
  #call_count = 0

  constructor(ctx: Pick<Context, 'config' | 'log' | 'elapsed' | 'metrics'>) {
    this.#ctx = ctx
    this.#rules = { ...webhookRules(ctx.config), names: createDns(ctx.config.dns_servers) }
    this.#breakers = createEndpointBreakers(ctx)
  }

  async ask(question: GameQuestion): Promise<string> {
    const { namespace_id, endpoint, timeout_ms, signal } = question
    const call = this.#breakers.enter(namespace_id, endpoint.url)
    if (typeof call === 'number') throw this.#notAsked(question, call)
    const deadline = AbortSignal.any([AbortSignal.timeout(Math.max(0, timeout_ms)), signal])
    const begin_ms = this.#ctx.elapsed()
    const lane = this.#lanes.get(namespace_id) ?? { call_count: 0, waiting: new Set() }
    this.#lanes.set(namespace_id, lane)
    await this.#enter(lane, deadline, call.is_probe)
    let response: GameResponse
    try {
      // The breaker may have opened while this call waited.
      if (!call.is_probe && call.waitMs() > 0) throw this.#notAsked(question, call.waitMs())
      const left_ms = timeout_ms - (this.#ctx.elapsed() - begin_ms)
      if (left_ms <= 0) throw noResponse()
      response = await this.#send(question, left_ms, call)
    } finally {
      this.#leave(namespace_id, lane)
    }
    const { status, body } = response
    if (status < 200 || status > 299) throw new ApiError('MATCHMAKER_VERIFICATION_FAILED')
    return body
  }

  /** Resolves when the lane may make one more call. Probes are few, and do not wait for calls that hang. */
  async #enter(lane: Lane, signal: AbortSignal, is_probe: boolean): Promise<void> {
    if (this.#call_count >= CALLS_MAX) throw noResponse()
    if (is_probe || lane.call_count < LANE_CALLS_MAX) {
      lane.call_count++
      this.#call_count++
      return
    }
    if (lane.waiting.size >= LANE_WAITING_MAX) throw noResponse()
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        lane.waiting.delete(turn)
        reject(noResponse())
      }
      const turn = (): void => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      lane.waiting.add(turn)
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  /** The next waiting call takes over, or the lane has one call less. */
  #leave(namespace_id: string, lane: Lane): void {
    const [next] = lane.waiting
    if (next !== undefined) {
      lane.waiting.delete(next)
      next()
      return
    }
    lane.call_count--
    this.#call_count--
    if (lane.call_count === 0) this.#lanes.delete(namespace_id)
  }

  #notAsked({ onNotAsked }: GameQuestion, wait_ms: number): ApiError {
    this.#breakers.countRefused()
    onNotAsked()
    return noResponse(Math.ceil(wait_ms / 1_000))
  }

  async #send(question: GameQuestion, left_ms: number, call: EndpointCall): Promise<GameResponse> {
    const { namespace_id, endpoint, body, signal, body_bytes_max } = question
    const headers = { 'content-type': 'application/json', ...lowerCased(endpoint.headers) }
    const request = {
      url: endpoint.url,
      method: 'POST' as const,
      headers,
      body,
      timeout_ms: left_ms,
      body_bytes_max,
    }
    try {
      const fetched = await safeFetch({ ...request, signal }, this.#rules)
      call.answered()
      return { status: fetched.status, body: fetched.body.toString('utf8') }
    } catch (error) {
      if (!(error instanceof FetchFailure)) throw error
      // All callers have hung up, which is no failure of the endpoint.
      if (signal.aborted) throw noResponse()
      if (error.reason !== 'timeout' || left_ms >= FAIR_MS_MIN) call.failed()
      const details = { namespace_id, reason: error.reason, why: error.message }
      this.#ctx.log.info(details, 'the verification endpoint of a game did not respond')
      throw noResponse()
    }
  }
}

/** Otherwise a header of the endpoint and one of the platform could both be sent. */
function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

function noResponse(retry_after_s?: number): ApiError {
  const wait = retry_after_s === undefined ? {} : { retry_after_s }
  return new ApiError('MATCHMAKER_VERIFICATION_REQUEST_FAILED', {}, wait)
}
