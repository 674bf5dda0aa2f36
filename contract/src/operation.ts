// An operation: everything that is known of one thing that can be said to the platform. The HTTP door, the client,
// openapi.json and the tests are made from it.
import type { Static, TObject, TSchema } from 'typebox'
import type { ErrorCode } from './errors.ts'
import { NO_BODY, NO_MEMBERS } from './records.ts'

/**
 * Who may call, by what their token proved:
 * - `anyone`: no credential is looked at.
 * - `admin`: an access token of the operator.
 * - `user`: a person who has logged in; on a group and its games with the right of `role` only.
 * - `cloud`: a cloud token; it acts for its own game only, every other game is unknown to it.
 * - `namespace`: a namespace's public token, or an Origin that stands for it, or the token of an identity of it.
 * - `identity`: a game's player, with the token of his identity; it stands for one namespace.
 * - `development`: a development token; the matchmaker answers as if a lobby ran on the developer's machine.
 * - `lobby`: the token that a running lobby was started with. Each of these operations is served at `PLATFORM_API_URL`, the one
 *   address that a lobby is given, and no other operation is.
 */
export type CallerKind = 'anyone' | 'admin' | 'user' | 'cloud' | 'namespace' | 'identity' | 'development' | 'lobby'

export function isForLobbies({ auth }: Pick<Operation, 'auth'>): boolean {
  return auth.includes('lobby')
}

/** What a member of a group may do, the most first: an owner can all that a developer can, and a developer all that a viewer can. */
export const GROUP_ROLES = ['owner', 'developer', 'viewer'] as const
export type GroupRole = (typeof GROUP_ROLES)[number]

/** The role that serves an operation. */
export type Service = 'api' | 'matchmaker'

/** Which rate limit an operation draws from. */
export type RateLimit = 'none' | 'seats' | 'matchmaker' | 'cloud' | 'kv'

export type Operation<
  Params extends TObject = TObject,
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
  Response extends TSchema = TSchema,
> = {
  /** As in the interface: <group>.<subgroup>.<operation>. */
  id: string
  service: Service
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Parameters in braces: /cloud/games/{game_id}. */
  path: string
  /** Further addresses of the same operation. */
  aliases: readonly string[]
  summary: string
  auth: readonly CallerKind[]
  /** The least that a `user` must be in the group that the operation acts on, or whose game it acts on; null: on none. */
  role: GroupRole | null
  rate_limit: RateLimit
  /** A member of the body that is a document of its own: what is wrong inside it is told by its path in the document. */
  document: string | null
  /** An Idempotency-Key header makes a repeated call answer what the first one answered. */
  idempotent: boolean
  params: Params
  query: Query
  body: Body
  response: Response
  /** The codes that are this operation's own; those of the door itself (400, 401, 403, 404, 413, 429, 5xx) go without saying. */
  errors: readonly ErrorCode[]
}

type Parts<P extends TObject, Q extends TObject, B extends TSchema, R extends TSchema> = Pick<
  Operation<P, Q, B, R>,
  'id' | 'service' | 'method' | 'path' | 'summary' | 'auth' | 'rate_limit' | 'response'
> &
  Partial<Operation<P, Q, B, R>>

/** Fills in what most operations do not have. */
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
