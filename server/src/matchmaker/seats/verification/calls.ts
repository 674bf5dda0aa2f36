// Calls to the endpoints of games, which are strangers: their addresses are classified and pinned (outbound/safe-fetch.ts),
// only the status of an answer is read, and nothing of theirs is followed or kept. Each namespace has a lane of its own:
// an endpoint that is slow makes its own players wait, and nobody else's.
import { ApiError, type VerificationConfig } from '@muster/contract'
import type { Context } from '../../../context.ts'
import { createDns } from '../../../outbound/dns.ts'
import { FetchFailure, type FetchRules, safeFetch } from '../../../outbound/safe-fetch.ts'
import { webhookRules } from '../../../outbound/webhook-rules.ts'
import { createEndpointBreakers, type EndpointCall } from './endpoint-breakers.ts'

/** Of one namespace: calls under way, and requests that wait for their turn. */
const LANE_CALLS_MAX = 128
const LANE_WAITING_MAX = 1_024
/** Of all namespaces together. */
const CALLS_MAX = 4_096
/** A call that had less time than this says nothing of its endpoint when it got no answer. */
const FAIR_MS_MIN = 1_000

export type GameQuestion = {
  namespace_id: string
  endpoint: VerificationConfig
  body: string
  timeout_ms: number
  /** Aborted when nobody waits for the answer any more. */
  signal: AbortSignal
  /** Called when the endpoint is not asked because it keeps failing. */
  onNotAsked: () => void
}

/** Throws MATCHMAKER_VERIFICATION_FAILED for a no, and MATCHMAKER_VERIFICATION_REQUEST_FAILED without an answer in time. */
export type AskGame = (question: GameQuestion) => Promise<void>

type Lane = { call_count: number; waiting: Set<() => void> }

export function createAskGame(ctx: Pick<Context, 'config' | 'log' | 'elapsed' | 'metrics'>): AskGame {
  const rules: FetchRules = { ...webhookRules(ctx.config), names: createDns(ctx.config.dns_servers) }
  const breakers = createEndpointBreakers(ctx)
  const lanes = new Map<string, Lane>()
  let call_count = 0

  /** Resolves when the lane has a place for one more call. Probes are few, and do not wait for calls that hang. */
  async function enter(lane: Lane, signal: AbortSignal, is_probe: boolean): Promise<void> {
    if (call_count >= CALLS_MAX) throw noAnswer()
    if (is_probe || lane.call_count < LANE_CALLS_MAX) {
      lane.call_count++
      call_count++
      return
    }
    if (lane.waiting.size >= LANE_WAITING_MAX) throw noAnswer()
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        lane.waiting.delete(turn)
        reject(noAnswer())
      }
      const turn = (): void => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      lane.waiting.add(turn)
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  /** The place is handed on, or free. */
  function leave(namespace_id: string, lane: Lane): void {
    const [next] = lane.waiting
    if (next !== undefined) {
      lane.waiting.delete(next)
      next()
      return
    }
    lane.call_count--
    call_count--
    if (lane.call_count === 0) lanes.delete(namespace_id)
  }

  function notAsked({ onNotAsked }: GameQuestion, wait_ms: number): ApiError {
    breakers.countRefused()
    onNotAsked()
    return noAnswer(Math.ceil(wait_ms / 1_000))
  }

  return async (question) => {
    const { namespace_id, endpoint, timeout_ms, signal } = question
    const call = breakers.enter(namespace_id, endpoint.url)
    if (typeof call === 'number') throw notAsked(question, call)
    const deadline = AbortSignal.any([AbortSignal.timeout(Math.max(0, timeout_ms)), signal])
    const begin_ms = ctx.elapsed()
    const lane = lanes.get(namespace_id) ?? { call_count: 0, waiting: new Set() }
    lanes.set(namespace_id, lane)
    await enter(lane, deadline, call.is_probe)
    let status: number
    try {
      // It was closed when this call began to wait for its turn.
      if (!call.is_probe && call.waitMs() > 0) throw notAsked(question, call.waitMs())
      const left_ms = timeout_ms - (ctx.elapsed() - begin_ms)
      if (left_ms <= 0) throw noAnswer()
      status = await ask(question, left_ms, call)
    } finally {
      leave(namespace_id, lane)
    }
    if (status < 200 || status > 299) throw new ApiError('MATCHMAKER_VERIFICATION_FAILED')
  }

  async function ask(question: GameQuestion, left_ms: number, call: EndpointCall): Promise<number> {
    const { namespace_id, endpoint, body, signal } = question
    const headers = { 'content-type': 'application/json', ...lowerCased(endpoint.headers) }
    const wish = { url: endpoint.url, method: 'POST' as const, headers, body, timeout_ms: left_ms, body_bytes_max: 0 }
    try {
      const { status } = await safeFetch({ ...wish, signal }, rules)
      call.answered()
      return status
    } catch (error) {
      if (!(error instanceof FetchFailure)) throw error
      // Nobody waits for the answer any more: that is not the endpoint's fault.
      if (signal.aborted) throw noAnswer()
      if (error.reason !== 'timeout' || left_ms >= FAIR_MS_MIN) call.failed()
      ctx.log.info({ namespace_id, reason: error.reason, why: error.message }, "a game's verification did not answer")
      throw noAnswer()
    }
  }
}

/** So that one of ours and one of theirs are not both sent. */
function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

function noAnswer(retry_after_s?: number): ApiError {
  const wait = retry_after_s === undefined ? {} : { retry_after_s }
  return new ApiError('MATCHMAKER_VERIFICATION_REQUEST_FAILED', {}, wait)
}
