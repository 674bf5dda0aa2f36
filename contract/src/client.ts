// The typed client: an operation in, its answer or an ApiError out. What the CLI, the hub, the examples and the tests
// call the platform with.
import { ApiError, ERRORS, type ErrorCode, isErrorBody } from './errors.ts'
import type { BodyOf, Operation, ParamsOf, QueryOf, ResponseOf } from './operation.ts'

type Given<K extends string, T> = Record<string, never> extends T ? { [P in K]?: T } : { [P in K]: T }

export type CallInput<O extends Operation> = Given<'params', ParamsOf<O>> &
  Given<'query', QueryOf<O>> &
  Given<'body', BodyOf<O>> & { headers?: Record<string, string>; signal?: AbortSignal }

export type Client = {
  /** Throws an ApiError when the platform refuses, and whatever fetch throws when it cannot be reached. */
  call: <O extends Operation>(operation: O, input: CallInput<O>) => Promise<ResponseOf<O>>
}

/** A list is said by repeating the name. */
type QueryValue = string | number | boolean

export type ClientOptions = {
  /** The main address, or the address of one role. */
  url: string
  token?: string
  headers?: Record<string, string>
}

/** A code of a newer platform than this client is kept in the message of an INTERNAL_ERROR. */
function toApiError(status: number, body: unknown, retry_after: string | null): ApiError {
  if (!isErrorBody(body)) return new ApiError('INTERNAL_ERROR', {}, { message: `The platform answered ${status}.` })
  const seconds = Number(retry_after)
  const retry = retry_after !== null && Number.isFinite(seconds) ? { retry_after_s: seconds } : {}
  if (!(body.code in ERRORS)) {
    return new ApiError('INTERNAL_ERROR', body.metadata, { message: `${body.code}: ${body.message}`, ...retry })
  }
  return new ApiError(body.code as ErrorCode, body.metadata, { message: body.message, ...retry })
}

export function createClient(options: ClientOptions): Client {
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
      const response = await fetch(`${options.url}${path}${query.size > 0 ? `?${query}` : ''}`, {
        method: operation.method,
        headers: {
          ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
          ...(given.body === undefined ? {} : { 'content-type': 'application/json' }),
          ...options.headers,
          ...given.headers,
        },
        body: given.body === undefined ? null : JSON.stringify(given.body),
        redirect: 'error',
        signal: given.signal ?? null,
      })
      const text = await response.text()
      const answer: unknown = text === '' ? undefined : JSON.parse(text)
      if (!response.ok) throw toApiError(response.status, answer, response.headers.get('retry-after'))
      return answer as never
    },
  }
}
