// Who may play together in a game mode: the member `matching` of a version config. Without it, find takes the fullest open lobby.
import Type, { type Static } from 'typebox'
import { object } from './records.ts'

/** Names of attributes and teams. */
const NAME = { pattern: '^[A-Za-z0-9_]([A-Za-z0-9_-]{0,30}[A-Za-z0-9_])?$' } as const
/** Players of one match. More candidates than this are not searched together. */
export const MATCH_PLAYERS_MAX = 100
/** Attributes of a game mode, and of a player. */
export const ATTRIBUTES_MAX = 16
/** Longest text of an attribute, and of an item of a list. */
export const ATTRIBUTE_TEXT_MAX = 128
/** Items of a list. */
export const ATTRIBUTE_ITEMS_MAX = 64
/** Largest number of an attribute, to either side of 0. */
export const ATTRIBUTE_NUMBER_MAX = 1_000_000_000
const RULES_MAX = 16
const TEAMS_MAX = 16
/** Longest wait that a rule knows, in seconds. */
const WAIT_S_MAX = 3_600
/** Steps of one rule. */
export const STEPS_MAX = 100

export const AttributeSchema = Type.Union(
  [
    Type.Number({ minimum: -ATTRIBUTE_NUMBER_MAX, maximum: ATTRIBUTE_NUMBER_MAX }),
    Type.String({ maxLength: ATTRIBUTE_TEXT_MAX }),
    Type.Array(Type.String({ maxLength: ATTRIBUTE_TEXT_MAX }), { maxItems: ATTRIBUTE_ITEMS_MAX }),
  ],
  { description: 'A number, a text of at most 128 characters, or a list of at most 64 texts.' },
)
export type AttributeValue = number | string | readonly string[]

export const Attributes = Type.Record(Type.String(NAME), AttributeSchema, {
  additionalProperties: false,
  maxProperties: ATTRIBUTES_MAX,
  description: 'Attributes of a player by name, at most 16. Example: `{"skill": 1210, "maps": ["dunes", "bay"]}`.',
})
export type Attributes = Readonly<Record<string, AttributeValue>>

const Attribute = object(
  {
    from: Type.Optional(
      Type.Enum(['game', 'player', 'rating'], {
        description:
          "Who says the value. `game`: the game's verification endpoint, or its backend with a cloud token. `player`: also the player's page, which may lie. `rating`: the rating that the platform keeps for the identity in this game mode. Default `game`.",
      }),
    ),
    default: Type.Optional(AttributeSchema),
  },
  'Source of an attribute, and its value for players without one. Without a `default`, a missing value matches any other.',
)

const Widen = object(
  {
    every_s: Type.Integer({ minimum: 1, maximum: WAIT_S_MAX, description: 'Seconds between two steps.' }),
    by: Type.Number({
      exclusiveMinimum: 0,
      maximum: ATTRIBUTE_NUMBER_MAX,
      description: 'How much each step admits more.',
    }),
    to: Type.Number({
      minimum: 0,
      maximum: ATTRIBUTE_NUMBER_MAX,
      description: 'The last limit. It is reached after at most 100 steps.',
    }),
  },
  'Admits more with the time that players wait. A limit of two players follows the one who has waited less.',
)

const attribute = (description: string) => Type.Optional(Type.String({ ...NAME, description }))
const limit = (description: string) =>
  Type.Optional(Type.Number({ minimum: 0, maximum: ATTRIBUTE_NUMBER_MAX, description }))

const Rule = object(
  {
    same: attribute('Attribute that must be equal for all. A party counts by its leader.'),
    near: attribute('Attribute whose greatest and least number differ by at most `within`.'),
    share: attribute('Attribute with lists, of which all have at least `at_least` texts in common.'),
    sum: attribute('Attribute whose sum over all players lies in `between`. Example: a number of healers.'),
    ping: Type.Optional(
      Type.Enum(['region'], {
        description:
          'A region in which no player has more than `within` milliseconds. The match starts where the worst is best.',
      }),
    ),
    balance: attribute('Attribute whose averages of the teams differ by at most `within`.'),
    even_teams: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MATCH_PLAYERS_MAX,
        description: 'Number of players by which the teams may differ.',
      }),
    ),
    within: limit('For `near`, `ping` and `balance`: the greatest difference, or the most milliseconds.'),
    at_least: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: ATTRIBUTE_ITEMS_MAX,
        description: 'For `share`: number of texts in common. Default 1.',
      }),
    ),
    between: Type.Optional(
      Type.Array(Type.Number({ minimum: 0, maximum: ATTRIBUTE_NUMBER_MAX }), {
        minItems: 2,
        maxItems: 2,
        description: 'For `sum`: the least and the greatest sum. Example: `[1, 3]`.',
      }),
    ),
    party: Type.Optional(
      Type.Enum(['average', 'least', 'greatest'], {
        description: 'For `near`: which number a party counts with. Default `average`.',
      }),
    ),
    widen: Type.Optional(Widen),
    optional_after_s: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: WAIT_S_MAX,
        description:
          'Seconds after which the rule refuses no match any more. Until then it refuses. Default: it always refuses.',
      }),
    ),
    weight: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1_000,
        description: 'How much the rule counts when several players fit. Default 1.',
      }),
    ),
  },
  'A condition on the players of a match: exactly one of `same`, `near`, `share`, `sum`, `ping`, `balance` and `even_teams`.',
)
export type RuleConfig = Static<typeof Rule>

const Team = object(
  {
    name: Type.String({ ...NAME, description: 'Name of the team, which the seat has as `team`. Example: `red`.' }),
    min: Type.Integer({ minimum: 0, maximum: MATCH_PLAYERS_MAX, description: 'Minimum number of players.' }),
    max: Type.Integer({ minimum: 1, maximum: MATCH_PLAYERS_MAX, description: 'Maximum number of players.' }),
  },
  'A team of the match.',
)

export const MatchingConfig = object(
  {
    size: Type.Optional(
      object(
        {
          min: Type.Integer({
            minimum: 1,
            maximum: MATCH_PLAYERS_MAX,
            description: 'Minimum number of players, from `start_after_s` on.',
          }),
          max: Type.Integer({
            minimum: 1,
            maximum: MATCH_PLAYERS_MAX,
            description: 'Number of players with which a match begins at once.',
          }),
        },
        'Number of players of a match. Default: that of all `teams`, otherwise `max_players`.',
      ),
    ),
    teams: Type.Optional(
      Type.Array(Team, { minItems: 1, maxItems: TEAMS_MAX, description: 'Teams of a match. Parties stay together.' }),
    ),
    attributes: Type.Optional(
      Type.Record(Type.String(NAME), Attribute, {
        additionalProperties: false,
        maxProperties: ATTRIBUTES_MAX,
        description: 'Attributes that rules name and that are not `from` the `game`, or have a default.',
      }),
    ),
    rules: Type.Optional(
      Type.Array(Rule, {
        maxItems: RULES_MAX,
        description: 'Conditions that all players of a match meet, at most 16.',
      }),
    ),
    start_after_s: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: WAIT_S_MAX,
        description:
          'Seconds that the first player waits before a match begins with fewer than `size.max` players. Default: it never does.',
      }),
    ),
    fill_open_lobbies: Type.Optional(
      Type.Boolean({
        description: 'Whether players who come later get free seats of lobbies that have begun. Default true.',
      }),
    ),
  },
  'Rules by which find puts players together. Find waits for a match. Default: find takes the fullest open lobby.',
)
export type MatchingConfig = Static<typeof MatchingConfig>
