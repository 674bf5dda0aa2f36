// Records and strings that more than one operation uses.
import Type, { type TSchema } from 'typebox'

/** Requests with unknown members are refused: a misspelt member must not be ignored silently. */
const strict = { additionalProperties: false } as const

export const NO_MEMBERS = Type.Object({}, strict)
/** An operation without a body takes none, or an empty object. */
export const NO_BODY = Type.Optional(Type.Object({}, strict))
/** Whether an operation with this body may be called without one. */
export const isOptionalBody = (body: TSchema): boolean => Type.IsOptional(body)
export const Empty = Type.Object({}, { ...strict, description: 'An empty object: the operation succeeded.' })

export const Timestamp = (description: string) =>
  Type.String({ format: 'date-time', description: `${description} RFC 3339, UTC, milliseconds.` })
/** For queries, which people write too: milliseconds are accepted beside RFC 3339. */
export const Instant = (description: string) =>
  Type.String({ format: 'instant', description: `${description} RFC 3339, or milliseconds since the epoch.` })
export const DisplayName = (length_max: number) =>
  Type.String({
    format: 'display-name',
    minLength: 1,
    maxLength: length_max,
    description: 'Name for people. Example: `Arena`.',
  })
export const NameId = Type.String({
  pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
  minLength: 1,
  maxLength: 16,
  description:
    'Short unique name for addresses: lower-case letters and digits, with single dashes in between. Example: `arena-2`.',
})

/** An unsigned 32-bit integer. */
export const U32 = (description: string) => Type.Integer({ minimum: 0, maximum: 4_294_967_295, description })
/** A number of bytes: an unsigned 64-bit integer that the platform's own limits keep below 2^53. */
export const Bytes = (description: string) =>
  Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: `${description} Below 2^53, so every JSON parser reads it exactly.`,
  })
export const ContentLength = Type.Integer({
  minimum: 0,
  maximum: 100_000_000_000,
  description: 'Exact length of the file in bytes, at most 100 GB.',
})

export const object = <P extends Parameters<typeof Type.Object>[0]>(properties: P, description?: string) =>
  Type.Object(properties, description === undefined ? strict : { ...strict, description })

/** For responses whose lists have a maximum length. */
export const IsCut = (rest: string) =>
  Type.Boolean({ description: `Whether entries are missing because the response has reached its maximum. ${rest}` })

/** For operations that support long polling. */
export const WatchIndex = Type.Optional(
  Type.String({
    maxLength: 64,
    description:
      'Long poll: `watch.index` of the previous response. The call waits up to 40 s for a change. Without it, the call returns at once.',
  }),
)
export const Watch = object(
  {
    index: Type.String({
      description: 'State of this response. Send it as `watch_index` to wait for the next change.',
    }),
  },
  'Position for long polling.',
)

/** Its type is in errors.ts. */
export const ErrorDetailRecord = object(
  {
    path: Type.Array(Type.String(), {
      description:
        'Path of the member, from the outermost name to the innermost. Example: `["config", "cdn", "site_id"]`.',
    }),
    reason: Type.String({ description: 'Why the value is wrong, for programs, in snake_case. Example: `required`.' }),
    message: Type.String({ description: 'The same as a sentence, for people.' }),
  },
  'A member of a request that is wrong.',
)

/** Durations of a request. */
export const Microseconds = (description: string) =>
  Type.Integer({ minimum: 0, description: `${description} Microseconds.` })

/** The same schema with a description of its own, for one use of a shared record. */
export const described = <T extends TSchema>(schema: T, description: string): T => ({ ...schema, description })

/** Entries of one page of a list that is continued with the id of its last entry. */
export const PAGE_MAX = 1_000
/** Limits a page: 1 to PAGE_MAX entries. */
export const PageLimit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: PAGE_MAX, description: 'Entries of the response. Default: 1,000.' }),
)
/** Continues a list. `name`: the member of its entries that identifies them. */
export const Before = (name: string) =>
  Type.Optional(
    Type.String({
      format: 'uuid',
      description: `Continues a list: \`${name}\` of the last entry of the previous response. Default: the newest entries.`,
    }),
  )
