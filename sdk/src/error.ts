// What every refused call throws, in the browser and in the lobby server alike.

/** The members of the platform's error body. */
type ErrorBody = { code?: unknown; message?: unknown; metadata?: unknown; ray_id?: unknown }

/**
 * A call that was refused, or that could not be made. Compare `code`, show `message`.
 *
 * Beside the platform's own codes there are three of the SDK: `CONNECTION_FAILED` (no answer came, after every retry),
 * `BAD_ANSWER` (an answer came that is not the platform's) and `NOT_A_LOBBY` (the environment lacks what was asked for).
 */
export class MusterError extends Error {
  readonly code: string
  /** The HTTP status; 0 when no answer came. */
  readonly status: number
  readonly metadata: Record<string, unknown>
  /** Names the request in the platform's log; quote it when you report a problem. */
  readonly ray_id: string | null
  /** How long the platform asked to wait before another try; null when it did not say. */
  readonly retry_after_ms: number | null

  constructor(code: string, message: string, parts: Partial<Omit<MusterError, keyof Error | 'code'>> = {}) {
    super(message)
    this.name = 'MusterError'
    this.code = code
    this.status = parts.status ?? 0
    this.metadata = parts.metadata ?? {}
    this.ray_id = parts.ray_id ?? null
    this.retry_after_ms = parts.retry_after_ms ?? null
  }
}

/** An error from the body and headers of a response, of the platform or of a proxy. */
export function errorOf(status: number, body: unknown, retryAfter: string | null | undefined): MusterError {
  const { code, message, metadata, ray_id } = (typeof body === 'object' && body !== null ? body : {}) as ErrorBody
  return new MusterError(
    typeof code === 'string' ? code : 'BAD_ANSWER',
    typeof message === 'string' ? message : `The platform returned status ${status}.`,
    {
      status,
      metadata: typeof metadata === 'object' && metadata !== null ? (metadata as Record<string, unknown>) : {},
      ray_id: typeof ray_id === 'string' ? ray_id : null,
      retry_after_ms: /^\d{1,6}$/.test(retryAfter ?? '') ? Number(retryAfter) * 1000 : null,
    },
  )
}

/** No match is complete yet: the same call goes on waiting, see browser.ts. */
export const WAITING = 'MATCHMAKER_WAITING'

/**
 * Whether the same request, with the same idempotency key, may be sent again: nothing answered, or what answered says
 * "not now". Every other answer is final.
 */
export function isTemporary(error: MusterError): boolean {
  if (error.code === WAITING) return false
  return error.code === 'CONNECTION_FAILED' || (error.status >= 502 && error.status <= 504)
}

const BACKOFF_MS_MIN = 100
/** A restart of the platform takes a second or two: who waits longer between two tries waits for nothing. */
const BACKOFF_MS_MAX = 1_000

/** How long to wait after attempt `count`, from 0: what the platform asked for, else a little longer each time. */
export function retryDelay(error: MusterError, count: number, ms_max = BACKOFF_MS_MAX): number {
  return error.retry_after_ms ?? Math.min(BACKOFF_MS_MIN * 2 ** count, ms_max)
}
