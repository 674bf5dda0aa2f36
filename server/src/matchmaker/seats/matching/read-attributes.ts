// The body of a verification endpoint's response, which may say attributes of the players.
import { Attributes } from '@musterhost/contract'
import type { MatchRules } from '@musterhost/contract/matching'
import { hasShape } from '@musterhost/contract/schema-check'
import Type, { type Static } from 'typebox'
import { checkAttributes } from './matching-request.ts'
import type { RequestAttributes } from './player-attributes.ts'

/** Members of a party by `identity_id`; all others, and a single player, have `attributes`. Other members are ignored. */
const VerificationAnswer = Type.Object({
  attributes: Type.Optional(Attributes),
  member_attributes: Type.Optional(Type.Record(Type.String(), Attributes, { maxProperties: 32 })),
})

/** An empty body says nothing. Null: the body has another form, or an attribute that no rule knows. */
export function readAttributes(rules: MatchRules, body: string): RequestAttributes | null {
  if (body.trim() === '') return { attributes: {}, member_attributes: {} }
  let answer: Static<typeof VerificationAnswer>
  try {
    answer = JSON.parse(body)
  } catch {
    return null
  }
  if (!hasShape(VerificationAnswer, answer)) return null
  const { attributes = {}, member_attributes = {} } = answer
  const all = [attributes, ...Object.values(member_attributes)]
  return all.every((one) => checkAttributes(rules, one, true, []).length === 0)
    ? { attributes, member_attributes }
    : null
}
