// Calls of the API with the token of the person. Everything that the hub shows or does goes through here or through the
// WebSockets of socket.ts.
import type { BodyOf, Operation, ParamsOf, QueryOf, ResponseOf } from '@musterhost/contract'
import { isUuid } from '@musterhost/contract/formats'
import { CallError, errorOf } from './call-error.ts'
import type { Described } from './describe.ts'
import { dropUserToken, userToken } from './session.ts'

type Given<K extends string, T> = Record<string, never> extends T ? { [P in K]?: T } : { [P in K]: T }
export type Input<O extends Operation> = Given<'params', ParamsOf<O>> &
  Given<'query', QueryOf<O>> &
  Given<'body', BodyOf<O>>

/** The parts of an input, whatever the operation. */
export type AnyInput = {
  params?: Record<string, string>
  query?: Record<string, QueryValue | readonly QueryValue[] | undefined>
  body?: unknown
}
type QueryValue = string | number | boolean

/** Ids in the addresses of pages, which people may mistype. Each is a lower-case UUID. */
const IDS = ['game_id', 'namespace_id', 'group_id', 'version_id', 'lobby_id', 'ray_id']

/** The path and the query of a call. */
export function addressOf(operation: Described, input: AnyInput): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(input.params?.[name] ?? ''))
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(input.query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) query.append(name, String(one))
  }
  return query.size > 0 ? `${path}?${query}` : path
}

/** Throws a CallError. A token that the platform no longer accepts is exchanged once, then the call is repeated. */
export async function call<O extends Operation>(
  operation: Described<O>,
  input: Input<O>,
  signal?: AbortSignal,
): Promise<ResponseOf<O>> {
  const response = await send(operation as Described, input as AnyInput, signal)
  const text = await response.text()
  return (text === '' ? {} : JSON.parse(text)) as ResponseOf<O>
}

/** For operations that need no session, such as the sign-in itself. */
export async function callAnonymously<O extends Operation>(
  operation: Described<O>,
  input: Input<O>,
): Promise<ResponseOf<O>> {
  const response = await request(operation as Described, input as AnyInput, null)
  if (!response.ok) throw await errorOf(response)
  return (await response.json()) as ResponseOf<O>
}

/** With another token than that of the person, such as one of a game. Returns the ray of the response beside its body. */
export async function callWithToken<O extends Operation>(
  operation: Described<O>,
  input: Input<O>,
  token: string,
  signal?: AbortSignal,
): Promise<{ response: ResponseOf<O>; ray_id: string | null }> {
  const response = await request(operation as Described, input as AnyInput, token, signal)
  if (!response.ok) throw await errorOf(response)
  return { response: (await response.json()) as ResponseOf<O>, ray_id: response.headers.get('x-ray-id') }
}

async function send(operation: Described, input: AnyInput, signal?: AbortSignal): Promise<Response> {
  const token = await userToken()
  if (token === null) throw new CallError('SIGNED_OUT', 'You are signed out. Sign in again.')
  const response = await request(operation, input, token, signal)
  if (response.ok) return response
  const error = await errorOf(response)
  if (error.status !== 401) throw error
  dropUserToken(token)
  const second = await userToken()
  if (second === null) throw error
  const repeated = await request(operation, input, second, signal)
  if (!repeated.ok) throw await errorOf(repeated)
  return repeated
}

async function request(
  operation: Described,
  input: AnyInput,
  token: string | null,
  signal?: AbortSignal,
): Promise<Response> {
  requireIds(operation, input.params ?? {})
  const headers: Record<string, string> = {}
  if (token !== null) headers.authorization = `Bearer ${token}`
  if (input.body !== undefined) headers['content-type'] = 'application/json'
  return fetch(addressOf(operation, input), {
    method: operation.method,
    headers,
    body: input.body === undefined ? null : JSON.stringify(input.body),
    signal: signal ?? null,
  }).catch((error: unknown) => {
    if (signal?.aborted === true) throw error
    throw CallError.unreachable()
  })
}

/** What has a malformed id does not exist. The platform would return an error about the form of the request. */
function requireIds({ path }: Described, params: Record<string, string>): void {
  const malformed = IDS.find((name) => path.includes(`{${name}}`) && !isUuid(params[name] ?? ''))
  if (malformed === undefined) return
  const what = malformed === 'ray_id' ? 'request' : malformed.replace('_id', '')
  throw new CallError('NOT_FOUND', `There is no such ${what}.`, { status: 404 })
}
