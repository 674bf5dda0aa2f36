// An operation of the platform's API. The HTTP server, the client, openapi.json and the tests are derived from it.
import type { Static, TObject, TSchema } from 'typebox'
import type { ErrorCode } from './errors.ts'
import { NO_BODY, NO_MEMBERS } from './records.ts'

/**
 * Callers, by what their token proves:
 * - `anyone`: no credential is read.
 * - `admin`: an access token of the operator.
 * - `user`: a person who has logged in. On a group and its games, the person needs the role in `role`.
 * - `cloud`: a cloud token. It acts for its own game; for every other game the response is "not found".
 * - `namespace`: a public token of the namespace, an Origin that stands for it, or an identity token of it.
 * - `identity`: a player, with an identity token, which stands for one namespace.
 * - `development`: a development token. The matchmaker responds as if a lobby ran on the developer's machine.
 * - `lobby`: the token that a running lobby received at its start. `PLATFORM_API_URL`, the only address that a lobby knows,
 *   serves exactly these operations.
 */
export type CallerKind = 'anyone' | 'admin' | 'user' | 'cloud' | 'namespace' | 'identity' | 'development' | 'lobby'

export function isForLobbies({ auth }: Pick<Operation, 'auth'>): boolean {
  return auth.includes('lobby')
}

/** Roles in a group, the highest first. Each role includes the rights of the roles after it. */
export const GROUP_ROLES = ['owner', 'developer', 'viewer'] as const
export type GroupRole = (typeof GROUP_ROLES)[number]

/** The role that serves an operation. */
export type Service = 'api' | 'matchmaker'

/** The rate limit that counts the calls of an operation. */
export type RateLimit = 'none' | 'seats' | 'matchmaker' | 'cloud' | 'kv'

export type Operation<
  Params extends TObject = TObject,
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
  Response extends TSchema = TSchema,
> = {
  /** <group>.<subgroup>.<operation> */
  id: string
  service: Service
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Parameters in braces: /cloud/games/{game_id}. */
  path: string
  /** Further addresses of the same operation. */
  aliases: readonly string[]
  summary: string
  auth: readonly CallerKind[]
  /** Role that a `user` needs, at least, in the group that the operation acts on. Null: the operation acts on no group. */
  role: GroupRole | null
  rate_limit: RateLimit
  /** Member of the body that is a document of its own: errors inside it have paths relative to the document. */
  document: string | null
  /** Whether the operation takes an Idempotency-Key header: a repeated call returns the response of the first. */
  idempotent: boolean
  /** Whether a repeated call without that header has no further effect, whatever calls come between. */
  repeatable: boolean
  /**
   * Whether it destroys, or gives that right to another person or key. A person with a passkey must have confirmed with it in the last five minutes.
   * Tokens of machines, and people without a passkey, are not asked.
   */
  confirm: boolean
  params: Params
  query: Query
  body: Body
  response: Response
  /** Error codes of this operation, without the general ones (400, 401, 403, 404, 413, 429, 5xx). */
  errors: readonly ErrorCode[]
}

type Parts<P extends TObject, Q extends TObject, B extends TSchema, R extends TSchema> = Pick<
  Operation<P, Q, B, R>,
  'id' | 'service' | 'method' | 'path' | 'summary' | 'auth' | 'rate_limit' | 'response'
> &
  Partial<Operation<P, Q, B, R>>

/** Fills in the defaults of most operations. */
export function operation<
  R extends TSchema,
  P extends TObject = typeof NO_MEMBERS,
  Q extends TObject = typeof NO_MEMBERS,
  B extends TSchema = typeof NO_BODY,
>(parts: Parts<P, Q, B, R>): Operation<P, Q, B, R> {
  return {
    aliases: [],
    role: null,
    document: null,
    idempotent: false,
    repeatable: false,
    confirm: false,
    params: NO_MEMBERS as unknown as P,
    query: NO_MEMBERS as unknown as Q,
    body: NO_BODY as unknown as B,
    errors: [],
    ...parts,
  }
}

export type ParamsOf<O extends Operation> = Static<O['params']>
export type QueryOf<O extends Operation> = Static<O['query']>
export type BodyOf<O extends Operation> = Static<O['body']>
export type ResponseOf<O extends Operation> = Static<O['response']>
