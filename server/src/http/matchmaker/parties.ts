import { createParty, getParty, joinParty, leaveParty, removePartyMember, setPartyLeader } from '@musterhost/contract'
import * as calls from '../../matchmaker/calls/parties.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { implement } from '../implement.ts'

export const parties = ({ context }: Matchmaker) => [
  implement(createParty, {
    identity: ({ caller, client_ip, client_key, user_agent }) =>
      calls.createParty(context(), caller, { client_ip, client_key, user_agent }),
  }),
  implement(getParty, {
    identity: ({ caller, query, isGone }) => calls.partyOf(context(), caller, query.watch_index, isGone),
  }),
  implement(joinParty, {
    identity: ({ caller, client_ip, client_key, user_agent, body }) =>
      calls.joinParty(context(), caller, { client_ip, client_key, user_agent }, body.code),
  }),
  implement(leaveParty, { identity: ({ caller }) => calls.leaveParty(context(), caller) }),
  implement(setPartyLeader, { identity: ({ caller, body }) => calls.setLeader(context(), caller, body.identity_id) }),
  implement(removePartyMember, {
    identity: ({ caller, params }) => calls.removeMember(context(), caller, params.identity_id),
  }),
]
