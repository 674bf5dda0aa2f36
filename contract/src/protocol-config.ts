// The protocol of another platform that the server of a lobby speaks, in place of the calls of this one.
import Type, { type Static } from 'typebox'
import { object } from './records.ts'

/** Counters or lists of one server. */
const TALLIES_MAX = 64
const LIST_CAPACITY_MAX = 1_000
const METADATA_MAX = 64
const TEXT_LENGTH_MAX = 1_024
const NAME_PATTERN = '^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$'

export const PROTOCOLS = ['agones', 'multiplay', 'gsdk', 'gamelift'] as const
export type ProtocolName = (typeof PROTOCOLS)[number]

const Counter = object(
  {
    count: Type.Optional(
      Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Value at the start. Default 0.' }),
    ),
    capacity: Type.Optional(
      Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Largest value. Default 1000.' }),
    ),
  },
  'A counter.',
)

const List = object(
  {
    values: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
        maxItems: LIST_CAPACITY_MAX,
        description: 'Values at the start. Default: none.',
      }),
    ),
    capacity: Type.Optional(
      Type.Integer({ minimum: 0, maximum: LIST_CAPACITY_MAX, description: 'Most values. Default 1000.' }),
    ),
  },
  'A list.',
)

const ProtocolOptions = object(
  {
    counters: Type.Optional(
      Type.Record(Type.String({ pattern: NAME_PATTERN }), Counter, {
        maxProperties: TALLIES_MAX,
        description: 'With `agones`: the counters that the server has, by name. Others do not exist for it.',
      }),
    ),
    lists: Type.Optional(
      Type.Record(Type.String({ pattern: NAME_PATTERN }), List, {
        maxProperties: TALLIES_MAX,
        description:
          'With `agones`: the lists that the server has, by name. The values of a list `players` are the ids of the players in the game.',
      }),
    ),
    room: Type.Optional(
      Type.String({
        pattern: NAME_PATTERN,
        description:
          'With `agones`: the counter or list that says how much room there is. While it is full, find leaves the lobby out. For servers with several sessions. Default: none does.',
      }),
    ),
    metadata: Type.Optional(
      Type.Record(Type.String({ minLength: 1, maxLength: 128 }), Type.String({ maxLength: TEXT_LENGTH_MAX }), {
        maxProperties: METADATA_MAX,
        description:
          'With `gsdk`: `buildMetadata` of its config file. With `multiplay`: further members of `server.json`. Default: none.',
      }),
    ),
    end_unhealthy: Type.Optional(
      Type.Boolean({
        description:
          'Whether a lobby ends whose server reports by its protocol that it is unhealthy, or no longer reports its health. Its players lose their seats. Default false: the hub shows it.',
      }),
    ),
  },
  'Settings of the protocol.',
)
export type ProtocolOptions = Static<typeof ProtocolOptions>

/** Members of a docker block. */
export const protocolMembers = {
  protocol: Type.Optional(
    Type.Enum([...PROTOCOLS], {
      description:
        'The platform for which the server was made, whose protocol it speaks: `agones`, `multiplay` (Unity), `gsdk` (PlayFab) or `gamelift` (server SDK 5). Its calls then do what ready, connected, disconnected and closed do here. Default: none.',
    }),
  ),
  protocol_options: Type.Optional(ProtocolOptions),
}

/** How a server speaks to the platform. */
export type ServerProtocol = { name: ProtocolName; options: ProtocolOptions }

/** Null: as the SDK of this platform does, or not at all. */
export function protocolOf(docker: {
  protocol?: ProtocolName
  protocol_options?: ProtocolOptions
}): ServerProtocol | null {
  return docker.protocol === undefined ? null : { name: docker.protocol, options: docker.protocol_options ?? {} }
}
