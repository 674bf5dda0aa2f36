import {
  createParty,
  getParty,
  joinParty,
  leaveParty,
  removePartyMember,
  setPartyLeader,
  watchEvents,
} from '@muster/contract'
import { eventsFor } from '../../matchmaker/calls/events.ts'
import * as desk from '../../matchmaker/calls/parties.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { implement } from '../implement.ts'
import { requireKind } from './lobbies.ts'

export const parties = (matchmaker: Matchmaker) => [
  implement(createParty, ({ caller, address, client, user_agent }) =>
    desk.createParty(matchmaker.desk(), requireKind(caller, 'identity'), { address, client, user_agent }),
  ),
  implement(getParty, ({ caller, query, isGone }) =>
    desk.partyOf(matchmaker.desk(), requireKind(caller, 'identity'), query.watch_index, isGone),
  ),
  implement(joinParty, ({ caller, address, client, user_agent, body }) =>
    desk.joinParty(matchmaker.desk(), requireKind(caller, 'identity'), { address, client, user_agent }, body.code),
  ),
  implement(leaveParty, ({ caller }) => desk.leaveParty(matchmaker.desk(), requireKind(caller, 'identity'))),
  implement(setPartyLeader, ({ caller, body }) =>
    desk.setLeader(matchmaker.desk(), requireKind(caller, 'identity'), body.identity_id),
  ),
  implement(removePartyMember, ({ caller, params }) =>
    desk.removeMember(matchmaker.desk(), requireKind(caller, 'identity'), params.identity_id),
  ),
  implement(watchEvents, async ({ caller, query, isGone }) => {
    const news = await eventsFor(matchmaker.desk(), requireKind(caller, 'identity'), query.watch_index, isGone)
    return news.answer
  }),
]
