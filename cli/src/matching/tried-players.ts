// The file of players of `muster matching try`.
import { Attributes } from '@musterhost/contract'
import Type from 'typebox'

/** Players of one file. */
const PLAYERS_MAX = 10_000

const TriedPlayer = Type.Object({
  at_s: Type.Optional(Type.Number({ minimum: 0, maximum: 86_400 })),
  attributes: Type.Optional(Attributes),
  party: Type.Optional(Type.Array(Attributes, { minItems: 1, maxItems: 32 })),
  latencies_ms: Type.Optional(Type.Record(Type.String(), Type.Number({ minimum: 0 }))),
})
export const TriedPlayers = Type.Array(TriedPlayer, { maxItems: PLAYERS_MAX })
