// Refusals of calls of the Agones SDK. gRPC and REST say each in their own way.
import { LobbyError } from '../lobby.ts'

/** The codes of gRPC that are used here, with the HTTP status of the JSON gateway. */
const CODES = {
  INVALID_ARGUMENT: { code: 3, status: 400 },
  NOT_FOUND: { code: 5, status: 404 },
  ALREADY_EXISTS: { code: 6, status: 409 },
  PERMISSION_DENIED: { code: 7, status: 403 },
  RESOURCE_EXHAUSTED: { code: 8, status: 429 },
  FAILED_PRECONDITION: { code: 9, status: 400 },
  OUT_OF_RANGE: { code: 11, status: 400 },
  UNIMPLEMENTED: { code: 12, status: 501 },
  INTERNAL: { code: 13, status: 500 },
  UNAVAILABLE: { code: 14, status: 503 },
  UNAUTHENTICATED: { code: 16, status: 401 },
} as const

/** Codes of the platform's public interface after which the same call can succeed later. Every other one is final. */
const TRANSIENT = new Set([
  'API_NOT_AVAILABLE',
  'API_RATE_LIMIT',
  'API_REQUEST_TIMEOUT',
  'INTERNAL_ERROR',
  'LOBBY_RUNNER_NOT_REACHABLE',
])

export class CallError extends Error {
  readonly code: number
  readonly status: number
  constructor(name: keyof typeof CODES, message: string) {
    super(message)
    this.code = CODES[name].code
    this.status = CODES[name].status
  }

  get is_transient(): boolean {
    return this.code === CODES.UNAVAILABLE.code
  }
}

/** Any thrown error as a refusal. `log` receives those that are faults of this program. */
export function callErrorOf(error: unknown, log: (line: string) => void): CallError {
  if (error instanceof CallError) return error
  if (error instanceof LobbyError) {
    const name = TRANSIENT.has(error.code) ? 'UNAVAILABLE' : 'FAILED_PRECONDITION'
    return new CallError(name, `${error.code}: ${error.message}`)
  }
  log(`agones: a call failed: ${error instanceof Error ? error.message : String(error)}`)
  return new CallError('INTERNAL', 'internal error')
}
