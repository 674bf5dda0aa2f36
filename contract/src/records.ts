// The records that more than one operation carries, and the strings they are made of.
import Type from 'typebox'

/** Unknown members of a request are refused, so that a misspelt one is not silently ignored. */
const strict = { additionalProperties: false } as const

export const NO_MEMBERS = Type.Object({}, strict)
/** An operation without a body takes none, or an empty object. */
export const NO_BODY = Type.Optional(Type.Object({}, strict))
export const Empty = Type.Object({}, { ...strict, description: 'Nothing: the operation succeeded.' })

export const Id = Type.String({ format: 'uuid', description: 'A lower-case UUID.' })
export const Timestamp = Type.String({ format: 'date-time', description: 'RFC 3339, UTC, milliseconds.' })
/** In queries, which are typed by people and by programs. */
export const Instant = (description: string) =>
  Type.String({ format: 'instant', description: `RFC 3339, or milliseconds since the epoch. ${description}` })
export const DisplayName = (length_max: number) =>
  Type.String({ format: 'display-name', minLength: 1, maxLength: length_max, description: 'A readable name.' })
export const NameId = Type.String({
  pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
  minLength: 1,
  maxLength: 16,
  description: 'Lower-case letters and digits, with single dashes in between.',
})

/** Unsigned integers; 64-bit ones stay below 2^53 by the platform's own limits. */
export const U32 = Type.Integer({ minimum: 0, maximum: 4_294_967_295 })
/** The sum of lengths that were taken, each of which is a ContentLength. */
export const Bytes = (description: string) =>
  Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: `${description} Unsigned 64 bit; never above 2^53 - 1, so that every JSON reader has it exactly.`,
  })
export const ContentLength = Type.Integer({
  minimum: 0,
  maximum: 100_000_000_000,
  description: 'Bytes. Unsigned 64 bit, exact.',
})

export const object = <P extends Parameters<typeof Type.Object>[0]>(properties: P, description?: string) =>
  Type.Object(properties, description === undefined ? strict : { ...strict, description })

/** Of a response whose lists have a largest size. */
export const IsCut = (rest: string) =>
  Type.Boolean({ description: `Whether something is missing because the response is full. ${rest}` })

/** For operations whose response can be waited for: sent back, the index of a response makes the call a long poll. */
export const WatchIndex = Type.Optional(
  Type.String({
    maxLength: 64,
    description: '`watch.index` of an earlier response. The call waits up to 40 s for a response with another index.',
  }),
)
export const Watch = object(
  { index: Type.String({ description: 'Stands for this response; send it as `watch_index` to wait for another.' }) },
  'Where to continue watching.',
)

/** Its type is in errors.ts. */
export const ErrorDetailRecord = object({
  path: Type.Array(Type.String(), { description: 'Where the member is, from the outside in.' }),
  reason: Type.String({ description: 'snake_case, for programs.' }),
  message: Type.String({ description: 'A sentence, for people.' }),
})

/** Durations of a request. */
export const Microseconds = (description: string) =>
  Type.Integer({ minimum: 0, description: `${description} Microseconds.` })
