// Parties: identities of one namespace who are seated together. A party is led by one of them, who asks for the seats.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Empty, Id, object, Timestamp } from '../records.ts'

export const Party = object(
  {
    party_id: Id,
    code: Type.String({ description: 'For those who are to join: whoever has it may.' }),
    leader_identity_id: Id,
    members: Type.Array(object({ identity_id: Id, join_ts: Timestamp }), {
      description: 'In the order in which they came; 32 at most.',
    }),
    create_ts: Timestamp,
    expire_ts: {
      ...Timestamp,
      description:
        'When the party ends unless it is used: 30 minutes after a member last changed it or looked at it, or 24 hours after it last got seats.',
    },
  },
  'Players who are seated together.',
)

const defaults = { service: 'matchmaker', auth: ['identity'], rate_limit: 'matchmaker' } as const
const answer = { response: object({ party: Party }) }

export const createParty = operation({
  ...defaults,
  ...answer,
  id: 'parties.create',
  method: 'POST',
  path: '/parties',
  summary: 'Makes a party that you lead; answers yours when you lead one already.',
  errors: ['NAMESPACE_NOT_FOUND', 'PARTY_ALREADY_MEMBER', 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'],
})

export const getParty = operation({
  ...defaults,
  id: 'parties.getSelf',
  method: 'GET',
  path: '/parties/self',
  summary: 'The party that you are in; with a watch_index answers when it has changed, or after a while.',
  query: object({ watch_index: Type.Optional(Type.String({ maxLength: 128 })) }),
  response: object({ party: Party, watch: object({ index: Type.String() }) }),
  errors: ['NAMESPACE_NOT_FOUND', 'PARTY_NOT_FOUND'],
})

export const joinParty = operation({
  ...defaults,
  ...answer,
  id: 'parties.join',
  method: 'POST',
  path: '/parties/join',
  summary: 'Joins the party of this code. Limits per client count you by the address that you call from now.',
  // Codes are short: who tries many is slowed down.
  rate_limit: 'seats',
  body: object({ code: Type.String({ minLength: 1, maxLength: 32 }) }),
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
  summary: 'Leaves your party; who has been in it for the longest time leads it then.',
  response: Empty,
  errors: ['NAMESPACE_NOT_FOUND'],
})

export const setPartyLeader = operation({
  ...defaults,
  ...answer,
  id: 'parties.setLeader',
  method: 'POST',
  path: '/parties/leader',
  summary: 'Hands the lead of your party to another member.',
  body: object({ identity_id: Id }),
  errors: ['NAMESPACE_NOT_FOUND', 'PARTY_NOT_FOUND', 'PARTY_LEADER_REQUIRED', 'PARTY_MEMBER_NOT_FOUND'],
})

export const removePartyMember = operation({
  ...defaults,
  ...answer,
  id: 'parties.removeMember',
  method: 'DELETE',
  path: '/parties/members/{identity_id}',
  summary: 'Takes a member out of the party that you lead, which has another code from then on.',
  params: object({ identity_id: Id }),
  errors: ['NAMESPACE_NOT_FOUND', 'PARTY_NOT_FOUND', 'PARTY_LEADER_REQUIRED', 'PARTY_MEMBER_NOT_FOUND'],
})
