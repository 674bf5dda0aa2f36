import {
  type BodyOf,
  createLobby,
  findLobby,
  getLobbyState,
  joinLobby,
  listLobbies,
  type Operation,
  type ResponseOf,
  setLobbyClosed,
  setLobbyReady,
  setLobbyState,
} from '@muster/contract'
import type { CallerOf } from '../../caller.ts'
import type { Prepared } from '../../json-text.ts'
import { developmentList, developmentNothing, developmentSeat } from '../../matchmaker/calls/development.ts'
import {
  closeLobby,
  listOpenLobbies,
  readyLobby,
  stateOfLobby,
  writeLobbyState,
} from '../../matchmaker/calls/lobbies.ts'
import { type Requester, requesterOf, type SeatRequest } from '../../matchmaker/seats/requester.ts'
import { createSeat, findSeat, joinSeat, type MatchmakerContext } from '../../matchmaker/seats/seats.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement, type OperationRequest } from '../implement.ts'

export const lobbies = (matchmaker: Matchmaker): Implementation[] => {
  const desk = matchmaker.desk
  const find = seatBy(matchmaker, findLobby, findSeat)
  const join = seatBy(matchmaker, joinLobby, joinSeat)
  const create = seatBy(matchmaker, createLobby, createSeat)
  const developmentSeatOf = ({ caller, body }: { caller: CallerOf<'development'>; body: SeatRequest['body'] }) =>
    developmentSeat(desk(), caller, body)
  const nothing = ({ caller }: { caller: CallerOf<'development'> }) => developmentNothing(desk(), caller)

  return [
    implement(findLobby, { namespace: find, cloud: find, development: developmentSeatOf }),
    implement(joinLobby, { namespace: join, cloud: join, development: developmentSeatOf }),
    implement(createLobby, { namespace: create, cloud: create, development: developmentSeatOf }),
    implement(setLobbyReady, { lobby: ({ caller }) => readyLobby(desk(), caller), development: nothing }),
    implement(setLobbyClosed, {
      lobby: ({ caller, body }) => closeLobby(desk(), caller, body.is_closed),
      development: nothing,
    }),
    implement(setLobbyState, {
      lobby: ({ caller, body }) => writeLobbyState(desk(), caller, body),
      development: nothing,
    }),
    implement(getLobbyState, {
      lobby: ({ caller, params }) => stateOfLobby(desk(), caller, params.lobby_id),
      namespace: ({ caller, params }) => stateOfLobby(desk(), caller, params.lobby_id),
      development: nothing,
    }),
    implement(listLobbies, {
      namespace: ({ caller, query, address }) => listOpenLobbies(desk(), caller.namespace_id, address, query),
      development: ({ caller, query }) => developmentList(desk(), caller, query),
    }),
  ]
}

type PlaceSeat<O extends Operation> = (
  desk: MatchmakerContext,
  requester: Requester,
  body: BodyOf<O>,
) => Promise<ResponseOf<O> | Prepared<ResponseOf<O>>>

/** A request of a player or of a game's backend for a seat. Its decisions are recorded, so that it can be explained. */
function seatBy<O extends typeof findLobby | typeof joinLobby | typeof createLobby>(
  matchmaker: Matchmaker,
  operation: O,
  placeSeat: PlaceSeat<O>,
) {
  return async (request: OperationRequest<O, 'namespace' | 'cloud'>) => {
    const requester = await requesterOf(matchmaker.namespaces, request)
    const { ray_id, body } = request
    const told = { ray_id, operation: operation.id, body }
    return matchmaker.desk().teller.tell(told, requester, () => placeSeat(matchmaker.desk(), requester, body))
  }
}
