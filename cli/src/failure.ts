// How a command ends when it does not succeed: the exit codes, an error that says what to do, and its text.

export const EXIT = { done: 0, failed: 1, usage: 2, not_allowed: 3, timed_out: 4 } as const
/** Ctrl-C: 128 and the number of SIGINT, as shells report it. */
export const INTERRUPTED_EXIT_CODE = 130

export type FailureDetail = { path: string; line?: number; column?: number; message: string }

type FailureOptions = {
  exit_code?: number
  /** What the user can do. A sentence, or a command. */
  remedy?: string
  ray_id?: string
  details?: readonly FailureDetail[]
  cause?: unknown
}

/** An expected failure. Every other thrown error is a bug, and is shown with its stack. */
export class Failure extends Error {
  readonly exit_code: number
  readonly remedy: string | undefined
  readonly ray_id: string | undefined
  readonly details: readonly FailureDetail[]

  constructor(message: string, options: FailureOptions = {}) {
    super(message, { cause: options.cause })
    this.name = 'Failure'
    this.exit_code = options.exit_code ?? EXIT.failed
    this.remedy = options.remedy
    this.ray_id = options.ray_id
    this.details = options.details ?? []
  }
}

const NOT_LOGGED_IN = 401
const LOG_IN_AGAIN = 'Log in again: muster login. A token in MUSTER_TOKEN counts before every login.'

/** The members of an ApiError that are shown. Its class is not imported: most commands end before the contract is loaded. */
type RefusedCall = Error & {
  code: string
  status: number
  metadata: Record<string, unknown>
  ray_id: string | undefined
  documentation: string | undefined
  retry_after_s: number | undefined
}

/** An error as text for people, and for `--json` as an object with the members of an error body. */
export type ErrorReport = { exit_code: number; text: string; json: Record<string, unknown> }

/** Null: the error is a bug. */
export function reportError(error: unknown): ErrorReport | null {
  if (error instanceof Failure) return reportFailure(error)
  if (!(error instanceof Error)) return null
  if (error.name === 'ApiError') return reportRefusedCall(error as RefusedCall)
  // These errors of the platform's own commands say in whole sentences what to do.
  if (error.name === 'ConfigError') return reportMessage(error, EXIT.usage)
  if (error.name === 'StartError') return reportMessage(error, EXIT.failed)
  if (error.name === 'AbortError') return reportMessage(new Error('Interrupted.'), INTERRUPTED_EXIT_CODE)
  return null
}

/** The text of an expected error, otherwise its stack. */
export function textOf(error: unknown): string {
  return reportError(error)?.text ?? (error instanceof Error ? (error.stack ?? error.message) : String(error))
}

function reportMessage(error: Error, exit_code: number): ErrorReport {
  return { exit_code, text: error.message, json: { message: error.message } }
}

function reportFailure(error: Failure): ErrorReport {
  const { exit_code, message, remedy, ray_id, details } = error
  const lines = [message, ...details.map(detailLine)]
  if (remedy !== undefined) lines.push(remedy)
  if (ray_id !== undefined) lines.push(`Ray id: ${ray_id}`)
  return {
    exit_code,
    text: lines.join('\n'),
    json: {
      message,
      ...(remedy === undefined ? {} : { remedy }),
      ...(details.length === 0 ? {} : { errors: details }),
      ...(ray_id === undefined ? {} : { ray_id }),
    },
  }
}

function detailLine({ path, line, column, message }: FailureDetail): string {
  const position = line === undefined ? '' : `${line}:${column ?? 1} `
  return `  ${position}${path}: ${message}`
}

function reportRefusedCall(error: RefusedCall): ErrorReport {
  const { code, message, documentation, metadata, ray_id, status, retry_after_s } = error
  const errors = Array.isArray(metadata.errors)
    ? (metadata.errors as { path?: unknown; message?: unknown }[]).map((one) => ({
        path: Array.isArray(one.path) ? one.path.join('.') : '',
        message: String(one.message ?? ''),
      }))
    : []
  const lines = [errors.length === 0 ? message : 'The platform refused the request:']
  for (const { path, message: text } of errors) lines.push(`  ${path === '' ? '' : `${path}: `}${text}`)
  const held_by = Array.isArray(metadata.held_by) ? (metadata.held_by as { kind?: unknown; id?: unknown }[]) : []
  for (const { kind, id } of held_by) lines.push(`  held by ${String(kind)} ${String(id)}`)
  if (retry_after_s !== undefined) lines.push(`Try again in ${retry_after_s} s.`)
  if (status === NOT_LOGGED_IN) lines.push(LOG_IN_AGAIN)
  lines.push(documentation === undefined ? `Code: ${code}` : `${code}: ${documentation}`)
  if (ray_id !== undefined) lines.push(`Ray id: ${ray_id}`)
  return {
    exit_code: status === 401 || status === 403 ? EXIT.not_allowed : EXIT.failed,
    text: lines.join('\n'),
    json: { code, message, documentation, metadata, ray_id },
  }
}
