// What a request waits for by the rules of its game mode: in explanations, and in events for those who wait.
import Type from 'typebox'
import { object } from '../records.ts'

const Count = (description: string) => Type.Integer({ minimum: 0, description })

export const waitMembers = {
  waited_ms: Count('How long the request had waited, in milliseconds.'),
  usual_wait_ms: Type.Optional(
    Count(
      'Half of the players of the game mode who got a match in the last hour waited at most so many milliseconds. Absent for fewer than 5.',
    ),
  ),
  players_waiting: Count('Players who waited in the same queue.'),
  players_missing: Count('Players who were missing for a match that begins at once.'),
}

export const RefusedBy = Type.Array(
  object({
    rule: Type.String({ description: 'The rule, or `regions` or `size`. Example: `near skill`.' }),
    candidates: Count('Requests that it refused first.'),
    limit: Type.Optional(Type.Number({ description: 'Limit of the rule at that time. Absent when it has none.' })),
    widens_in_ms: Type.Optional(Count('Milliseconds until the limit widens. Absent when it does not.')),
  }),
  { description: 'Rules that refused other requests, those with the most refusals first.' },
)
