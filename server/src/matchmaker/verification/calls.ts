// Calls to the endpoints of games, which are strangers: their addresses are classified and pinned (net/safe-fetch.ts),
// only the status of an answer is read, and nothing of theirs is followed or kept. Each namespace has a lane of its own:
// an endpoint that is slow makes its own players wait, and nobody else's.
import { ApiError, type VerificationConfig } from '@muster/contract'
import type { Context } from '../../context.ts'
import { createNames } from '../../net/resolve.ts'
import { FetchFailure, type FetchRules, safeFetch } from '../../net/safe-fetch.ts'
import { webhookRules } from '../../net/webhook-rules.ts'

/** Of one namespace: calls under way, and requests that wait for their turn. */
const LANE_CALLS_MAX = 128
const LANE_WAITING_MAX = 1_024
/** Of all namespaces together. */
const CALLS_MAX = 4_096

export type GameQuestion = {
  namespace_id: string
  endpoint: VerificationConfig
  body: string
  timeout_ms: number
  /** Aborted when nobody waits for the answer any more. */
  signal: AbortSignal
}

/** Throws MATCHMAKER_VERIFICATION_FAILED for a no, and MATCHMAKER_VERIFICATION_REQUEST_FAILED without an answer in time. */
export type AskGame = (question: GameQuestion) => Promise<void>

type Lane = { call_count: number; waiting: Set<() => void> }

export function createAskGame(ctx: Pick<Context, 'config' | 'log'>): AskGame {
  const rules: FetchRules = { ...webhookRules(ctx.config), names: createNames(ctx.config.dns_servers) }
  const lanes = new Map<string, Lane>()
  let call_count = 0

  /** Resolves when the lane has a place for one more call. */
  async function enter(lane: Lane, signal: AbortSignal): Promise<void> {
    if (call_count >= CALLS_MAX) throw noAnswer()
    if (lane.call_count < LANE_CALLS_MAX) {
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

  return async ({ namespace_id, endpoint, body, timeout_ms, signal }) => {
    const deadline = AbortSignal.any([AbortSignal.timeout(Math.max(0, timeout_ms)), signal])
    const begin_ms = performance.now()
    const lane = lanes.get(namespace_id) ?? { call_count: 0, waiting: new Set() }
    lanes.set(namespace_id, lane)
    await enter(lane, deadline)
    let status: number
    try {
      const left_ms = Math.trunc(timeout_ms - (performance.now() - begin_ms))
      if (left_ms <= 0) throw noAnswer()
      const headers = { 'content-type': 'application/json', ...lowerCased(endpoint.headers) }
      const call = { url: endpoint.url, method: 'POST' as const, headers, body, timeout_ms: left_ms, body_bytes_max: 0 }
      status = (await safeFetch({ ...call, signal }, rules)).status
    } catch (error) {
      if (!(error instanceof FetchFailure)) throw error
      ctx.log.info({ namespace_id, reason: error.reason, why: error.message }, "a game's verification did not answer")
      throw noAnswer()
    } finally {
      leave(namespace_id, lane)
    }
    if (status < 200 || status > 299) throw new ApiError('MATCHMAKER_VERIFICATION_FAILED')
  }
}

/** So that one of ours and one of theirs are not both sent. */
function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

function noAnswer(): ApiError {
  return new ApiError('MATCHMAKER_VERIFICATION_REQUEST_FAILED')
}
