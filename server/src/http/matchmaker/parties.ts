import { createParty, getParty, joinParty, leaveParty, removePartyMember, setPartyLeader } from '@muster/contract'
import * as calls from '../../matchmaker/calls/parties.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { implement } from '../implement.ts'

export const parties = ({ desk }: Matchmaker) => [
  implement(createParty, {
    identity: ({ caller, address, client, user_agent }) =>
      calls.createParty(desk(), caller, { address, client, user_agent }),
  }),
  implement(getParty, {
    identity: ({ caller, query, isGone }) => calls.partyOf(desk(), caller, query.watch_index, isGone),
  }),
  implement(joinParty, {
    identity: ({ caller, address, client, user_agent, body }) =>
      calls.joinParty(desk(), caller, { address, client, user_agent }, body.code),
  }),
  implement(leaveParty, { identity: ({ caller }) => calls.leaveParty(desk(), caller) }),
  implement(setPartyLeader, { identity: ({ caller, body }) => calls.setLeader(desk(), caller, body.identity_id) }),
  implement(removePartyMember, {
    identity: ({ caller, params }) => calls.removeMember(desk(), caller, params.identity_id),
  }),
]
