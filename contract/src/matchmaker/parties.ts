// Parties: identities of one namespace who get their seats together. Each party has a leader, who requests the seats.
import Type from 'typebox'
import { Id, IdentityId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, Empty, object, Timestamp, Watch } from '../records.ts'

export const Party = object(
  {
    party_id: Id('Id of the party.'),
    code: Type.String({ description: 'Code with which others join the party. Example: `K3F7QX9A`.' }),
    leader_identity_id: Id('Id of the member who leads the party.'),
    members: Type.Array(object({ identity_id: IdentityId, join_ts: Timestamp('When the member joined the party.') }), {
      description: 'Members in the order in which they joined, at most 32.',
    }),
    create_ts: Timestamp('When the party was created.'),
    expire_ts: Timestamp(
      'When an unused party ends: 30 minutes after a member last changed or read it, or 24 hours after it last got seats.',
    ),
  },
  'A party: players who get their seats together.',
)

const defaults = { service: 'matchmaker', auth: ['identity'], rate_limit: 'matchmaker' } as const
const response = { response: object({ party: Party }) }

export const createParty = operation({
  ...defaults,
  ...response,
  id: 'parties.create',
  method: 'POST',
  path: '/parties',
  summary: 'Creates a party with the caller as its leader, or returns the party that the caller leads.',
  errors: ['NAMESPACE_NOT_FOUND', 'PARTY_ALREADY_MEMBER', 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'],
})

export const getParty = operation({
  ...defaults,
  id: 'parties.getSelf',
  method: 'GET',
  path: '/parties/self',
  summary: "Gets the caller's party. With a watch index, the call waits for a change.",
  query: object({
    watch_index: Type.Optional(
      Type.String({
        maxLength: 128,
        description: 'Long poll: `watch.index` of the previous response. The call waits up to 40 s for a change.',
      }),
    ),
  }),
  response: object({ party: Party, watch: Watch }),
  errors: ['NAMESPACE_NOT_FOUND', 'PARTY_NOT_FOUND'],
})

export const joinParty = operation({
  ...defaults,
  ...response,
  id: 'parties.join',
  method: 'POST',
  path: '/parties/join',
  summary:
    'Joins the party with this code. From now on, limits per client count the caller by the address of this call.',
  // Codes are short: this limit slows down guessing.
  rate_limit: 'seats',
  body: object({
    code: Type.String({ minLength: 1, maxLength: 32, description: 'Code of the party. Example: `K3F7QX9A`.' }),
  }),
  errors: [
    'NAMESPACE_NOT_FOUND',
    'PARTY_CODE_INVALID',
    'PARTY_FULL',
    'PARTY_ALREADY_MEMBER',
    'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE',
  ],
})

export const leaveParty = operation({
  ...defaults,
  id: 'parties.leave',
  method: 'POST',
  path: '/parties/leave',
  summary: "Leaves the caller's party. When the leader leaves, the oldest member becomes the leader.",
  response: Empty,
  errors: ['NAMESPACE_NOT_FOUND'],
})

export const setPartyLeader = operation({
  ...defaults,
  ...response,
  id: 'parties.setLeader',
  method: 'POST',
  path: '/parties/leader',
  summary: "Makes another member the leader of the caller's party.",
  body: object({ identity_id: described(IdentityId, 'Id of the member who becomes the leader.') }),
  errors: ['NAMESPACE_NOT_FOUND', 'PARTY_NOT_FOUND', 'PARTY_LEADER_REQUIRED', 'PARTY_MEMBER_NOT_FOUND'],
})

export const removePartyMember = operation({
  ...defaults,
  ...response,
  id: 'parties.removeMember',
  method: 'DELETE',
  path: '/parties/members/{identity_id}',
  summary: 'Removes a member from the party that the caller leads. The party gets a new code.',
  params: object({ identity_id: IdentityId }),
  errors: ['NAMESPACE_NOT_FOUND', 'PARTY_NOT_FOUND', 'PARTY_LEADER_REQUIRED', 'PARTY_MEMBER_NOT_FOUND'],
})
