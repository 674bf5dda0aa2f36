import {
  createLobby,
  findLobby,
  getLobbyState,
  joinLobby,
  listLobbies,
  type Operation,
  setLobbyClosed,
  setLobbyReady,
  setLobbyState,
} from '@musterhost/contract'
import { developmentList, developmentNothing, developmentSeat } from '../../matchmaker/calls/development.ts'
import {
  closeLobby,
  listOpenLobbies,
  readyLobby,
  stateOfLobby,
  writeLobbyState,
} from '../../matchmaker/calls/lobbies.ts'
import type { SeatCall } from '../../matchmaker/seats/requester.ts'
import { createSeat, findSeat, joinSeat } from '../../matchmaker/seats/seats.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import { type Implementation, implement, type OperationRequest } from '../implement.ts'

/** Call of a player, or of a game's backend. */
type Call<O extends Operation> = OperationRequest<O, 'namespace' | 'cloud'>

export const lobbies = (matchmaker: Matchmaker): Implementation[] => {
  const context = matchmaker.context
  const find = (call: Call<typeof findLobby>) => findSeat(matchmaker, call)
  const join = (call: Call<typeof joinLobby>) => joinSeat(matchmaker, call)
  const create = (call: Call<typeof createLobby>) => createSeat(matchmaker, call)
  const developmentSeatOf = ({ caller, body }: { caller: CallerOf<'development'>; body: SeatCall['body'] }) =>
    developmentSeat(context(), caller, body)
  const nothing = ({ caller }: { caller: CallerOf<'development'> }) => developmentNothing(context(), caller)

  return [
    implement(findLobby, { namespace: find, cloud: find, development: developmentSeatOf }),
    implement(joinLobby, { namespace: join, cloud: join, development: developmentSeatOf }),
    implement(createLobby, { namespace: create, cloud: create, development: developmentSeatOf }),
    implement(setLobbyReady, { lobby: ({ caller }) => readyLobby(context(), caller), development: nothing }),
    implement(setLobbyClosed, {
      lobby: ({ caller, body }) => closeLobby(context(), caller, body.is_closed),
      development: nothing,
    }),
    implement(setLobbyState, {
      lobby: ({ caller, body }) => writeLobbyState(context(), caller, body),
      development: nothing,
    }),
    implement(getLobbyState, {
      lobby: ({ caller, params }) => stateOfLobby(context(), caller, params.lobby_id),
      namespace: ({ caller, params }) => stateOfLobby(context(), caller, params.lobby_id),
      development: nothing,
    }),
    implement(listLobbies, {
      namespace: ({ caller, query, client_ip }) => listOpenLobbies(context(), caller.namespace_id, client_ip, query),
      development: ({ caller, query }) => developmentList(context(), caller, query),
    }),
  ]
}
