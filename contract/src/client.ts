// The typed client of the CLI, the examples and the tests: it calls an operation, and returns its response or throws an
// ApiError.
import { ApiError, ERRORS, type ErrorCode, isErrorBody } from './errors.ts'
import type { BodyOf, Operation, ParamsOf, QueryOf, ResponseOf } from './operation.ts'

type Given<K extends string, T> = Record<string, never> extends T ? { [P in K]?: T } : { [P in K]: T }

export type CallInput<O extends Operation> = Given<'params', ParamsOf<O>> &
  Given<'query', QueryOf<O>> &
  Given<'body', BodyOf<O>> & { headers?: Record<string, string>; signal?: AbortSignal }

export type Client = {
  /** Throws an ApiError for an error response, and a TypeError when there is no response. */
  call: <O extends Operation>(operation: O, input: CallInput<O>) => Promise<ResponseOf<O>>
}

/** A list is sent by repeating the name. */
type QueryValue = string | number | boolean

export type ClientOptions = {
  /** The main address, or the address of one role. */
  url: string
  token?: string
  headers?: Record<string, string>
  /** Default: `fetch`. */
  send?: SendRequest
}

export type SentRequest = {
  method: string
  headers: Record<string, string>
  body: string | null
  signal: AbortSignal | null
}
export type Received = { status: number; retry_after: string | null; text: string }
/** Throws a TypeError when there is no response, whose cause says why. A redirect counts as none. */
export type SendRequest = (url: string, request: SentRequest) => Promise<Received>

/** An unknown code of a newer platform becomes part of the message of an INTERNAL_ERROR. */
function toApiError(status: number, body: unknown, retry_after: string | null): ApiError {
  if (!isErrorBody(body))
    return new ApiError('INTERNAL_ERROR', {}, { message: `The platform returned status ${status}.` })
  const seconds = Number(retry_after)
  const retry = retry_after !== null && Number.isFinite(seconds) ? { retry_after_s: seconds } : {}
  const options = { ...retry, ray_id: body.ray_id, documentation: body.documentation }
  if (!(body.code in ERRORS)) {
    return new ApiError('INTERNAL_ERROR', body.metadata, { message: `${body.code}: ${body.message}`, ...options })
  }
  return new ApiError(body.code as ErrorCode, body.metadata, { message: body.message, ...options })
}

async function sendByFetch(url: string, request: SentRequest): Promise<Received> {
  const response = await fetch(url, { ...request, redirect: 'error' })
  return {
    status: response.status,
    retry_after: response.headers.get('retry-after'),
    text: await response.text(),
  }
}

export function createClient(options: ClientOptions): Client {
  const send = options.send ?? sendByFetch
  return {
    async call(operation, input) {
      const given = input as {
        params?: Record<string, string>
        query?: Record<string, QueryValue | readonly QueryValue[] | undefined>
        body?: unknown
        headers?: Record<string, string>
        signal?: AbortSignal
      }
      const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
        encodeURIComponent(given.params?.[name] ?? ''),
      )
      const query = new URLSearchParams()
      for (const [name, value] of Object.entries(given.query ?? {})) {
        for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) query.append(name, String(one))
      }
      const { status, retry_after, text } = await send(`${options.url}${path}${query.size > 0 ? `?${query}` : ''}`, {
        method: operation.method,
        headers: {
          ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
          ...(given.body === undefined ? {} : { 'content-type': 'application/json' }),
          ...options.headers,
          ...given.headers,
        },
        body: given.body === undefined ? null : JSON.stringify(given.body),
        signal: given.signal ?? null,
      })
      const body: unknown = text === '' ? undefined : JSON.parse(text)
      if (status < 200 || status > 299) throw toApiError(status, body, retry_after)
      return body as never
    },
  }
}
