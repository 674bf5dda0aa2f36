// What becomes of a notice after the response of its target. Pure.
import type { IncomingHttpHeaders } from 'node:http'

/**
 * `delivered`: the target took it. `wait`: the target asks to wait, which is no failure. `retry`: it may take it later.
 * `refused`: it does not take this notice. `dead`: it takes none.
 */
export type SendOutcome =
  | { kind: 'delivered' }
  | { kind: 'wait'; wait_ms: number }
  | { kind: 'retry' }
  | { kind: 'refused' }
  | { kind: 'dead' }

/** A target may ask for a pause at most this long. */
export const WAIT_MS_MAX = 3_600_000
/** Pause when a target says 429 without a time. */
const WAIT_MS_DEFAULT = 5_000
/** Statuses of a webhook that was deleted, of a wrong token, and of a chat that the bot has left. */
const DEAD: readonly number[] = [401, 403, 404, 405, 410]
/** Statuses that say nothing about the notice or the target. */
const PASSING: readonly number[] = [408, 425]

export function outcomeOf(status: number, headers: IncomingHttpHeaders, body: string, now_ms: number): SendOutcome {
  if (status >= 200 && status < 300) return { kind: 'delivered' }
  if (status === 429) return { kind: 'wait', wait_ms: waitOf(headers, body, now_ms) }
  if (DEAD.includes(status)) return { kind: 'dead' }
  if (status >= 300 && status < 500 && !PASSING.includes(status)) return { kind: 'refused' }
  return { kind: 'retry' }
}

/** `retry_after` of Discord (seconds, with a fraction) or Telegram (in `parameters`), or the header, whichever is first. */
function waitOf(headers: IncomingHttpHeaders, body: string, now_ms: number): number {
  const seconds = secondsOf(body) ?? headerSeconds(headers['retry-after'], now_ms)
  const wait_ms = seconds === null ? WAIT_MS_DEFAULT : Math.ceil(seconds * 1_000)
  return Math.min(WAIT_MS_MAX, Math.max(0, wait_ms))
}

function secondsOf(body: string): number | null {
  try {
    const answer = JSON.parse(body) as { retry_after?: unknown; parameters?: { retry_after?: unknown } } | null
    const seconds = answer?.retry_after ?? answer?.parameters?.retry_after
    return typeof seconds === 'number' && Number.isFinite(seconds) ? seconds : null
  } catch {
    return null
  }
}

function headerSeconds(header: string | undefined, now_ms: number): number | null {
  if (header === undefined) return null
  if (/^\d{1,9}(\.\d{1,9})?$/.test(header)) return Number(header)
  const ms = Date.parse(header)
  return Number.isNaN(ms) ? null : (ms - now_ms) / 1_000
}

/** First pause after a failure; each is twice as long as the one before, up to the longest. */
const BACKOFF_MS_FIRST = 1_000
const BACKOFF_MS_MAX = 30 * 60_000
/** Failures of one notice in a row, about six hours, before its target is paused. */
export const ATTEMPTS_MAX = 20
/** Refusals of one notice before it is given up, and of its target before it is paused. */
export const REFUSALS_MAX = 3

/** `attempts`: failed ones, at least 1. */
export function backoffMs(attempts: number, factor = 1): number {
  return Math.min(BACKOFF_MS_MAX, BACKOFF_MS_FIRST * 2 ** (attempts - 1)) * factor
}
