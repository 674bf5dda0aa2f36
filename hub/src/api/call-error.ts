// What went wrong with a call, in the words of the platform.
import type { ErrorDetail } from '@musterhost/contract'

export class CallError extends Error {
  readonly code: string
  readonly status: number
  readonly ray_id: string | null
  readonly documentation: string | null
  readonly metadata: Record<string, unknown>

  constructor(
    code: string,
    message: string,
    rest: {
      status?: number
      ray_id?: string | null
      documentation?: string | null
      metadata?: Record<string, unknown>
    } = {},
  ) {
    super(message)
    this.name = 'CallError'
    this.code = code
    this.status = rest.status ?? 0
    this.ray_id = rest.ray_id ?? null
    this.documentation = rest.documentation ?? null
    this.metadata = rest.metadata ?? {}
  }

  /** A fault of the page itself becomes an internal error. */
  static of(failure: unknown): CallError {
    return failure instanceof CallError ? failure : new CallError('INTERNAL_ERROR', String(failure))
  }

  static unreachable(): CallError {
    return new CallError('UNREACHABLE', 'The platform cannot be reached. Check the network, and whether it runs.')
  }

  /** Errors of single members of the request. */
  get details(): readonly ErrorDetail[] {
    const { errors } = this.metadata
    // A single error is the message already.
    return Array.isArray(errors) ? (errors as ErrorDetail[]).filter(({ message }) => message !== this.message) : []
  }

  /** Whether the same call may succeed later. What does not exist, or may not be done, stays so. */
  get is_temporary(): boolean {
    return this.status === 0 || this.status >= 500 || this.status === 408 || this.status === 429
  }

  /** What the server of a lobby wrote last, where the lobby did not become ready. */
  get log_lines(): readonly string[] {
    const { log_lines } = this.metadata
    return Array.isArray(log_lines) ? log_lines.map(String) : []
  }
}

/** Reads the error body of a response. */
export async function errorOf(response: Response): Promise<CallError> {
  const body: unknown = await response.json().catch(() => null)
  if (typeof body !== 'object' || body === null || !('code' in body)) {
    return new CallError(
      'INTERNAL_ERROR',
      `This response is not of the platform, but of a proxy in front of it: status ${response.status}. The platform may be restarting.`,
      {
        status: response.status,
      },
    )
  }
  const { code, message, ray_id, documentation, metadata } = body as {
    code: string
    message: string
    ray_id?: string
    documentation?: string
    metadata?: Record<string, unknown>
  }
  return new CallError(code, message, {
    status: response.status,
    ray_id: ray_id ?? null,
    documentation: documentation ?? null,
    metadata: metadata ?? {},
  })
}
