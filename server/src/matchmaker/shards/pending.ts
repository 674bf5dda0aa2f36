// A command whose caller waits, and the two ends of the wait: the decision of the book, or an error.
import { ApiError } from '@musterhost/contract'
import type { Decision, Env } from '../book/commands.ts'
import type { Book } from '../book/state.ts'

/** Reads the book and returns a refusal or changes. `env` is valid during the call only. */
export type Decide<T> = (book: Book, env: Env) => Decision<T>

export type Pending = {
  namespace_id: string
  decide: Decide<unknown>
  /** By the monotonic clock. */
  since_ms: number
  decision: Decision<unknown> | null
  /** Its caller has the result or an error: the command must not be carried out (again). */
  is_settled: boolean
  resolve: (decision: Decision<never>) => void
  reject: (error: unknown) => void
}

export function settle(pending: Pending): void {
  pending.is_settled = true
  pending.resolve(pending.decision as Decision<never>)
}

export function reject(pending: Pending, error: unknown): void {
  pending.is_settled = true
  pending.reject(error)
}

export function notAvailable(): ApiError {
  return new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
}

/** A refusal of the row itself by PostgreSQL is a fault of this program; anything else is an outage. */
export function refusalOf(error: unknown): unknown {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^(0A|22|23|42|54)...$/.test(code) ? error : notAvailable()
}
