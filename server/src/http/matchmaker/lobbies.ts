import {
  ApiError,
  createLobby,
  findLobby,
  getLobbyState,
  joinLobby,
  listLobbies,
  setLobbyClosed,
  setLobbyReady,
  setLobbyState,
} from '@muster/contract'
import type { Caller, CallerOf } from '../../caller.ts'
import { developmentList, developmentNothing, developmentSeat } from '../../matchmaker/calls/development.ts'
import {
  closeLobby,
  listOpenLobbies,
  readyLobby,
  stateOfLobby,
  writeLobbyState,
} from '../../matchmaker/calls/lobbies.ts'
import { type Requester, requesterOf, type SeatRequest } from '../../matchmaker/seats/requester.ts'
import { createSeat, findSeat, joinSeat } from '../../matchmaker/seats/seats.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'

export const lobbies = (matchmaker: Matchmaker): Implementation[] => [
  implement(findLobby, async (request) =>
    request.caller.kind === 'development'
      ? developmentSeat(matchmaker.desk(), request.caller, request.body)
      : told(matchmaker, findLobby.id, request, (visitor) => findSeat(matchmaker.desk(), visitor, request.body)),
  ),
  implement(joinLobby, async (request) =>
    request.caller.kind === 'development'
      ? developmentSeat(matchmaker.desk(), request.caller, request.body)
      : told(matchmaker, joinLobby.id, request, (visitor) => joinSeat(matchmaker.desk(), visitor, request.body)),
  ),
  implement(createLobby, async (request) =>
    request.caller.kind === 'development'
      ? developmentSeat(matchmaker.desk(), request.caller, request.body)
      : told(matchmaker, createLobby.id, request, (visitor) => createSeat(matchmaker.desk(), visitor, request.body)),
  ),
  implement(setLobbyReady, ({ caller }) =>
    caller.kind === 'development'
      ? developmentNothing(matchmaker.desk(), caller)
      : readyLobby(matchmaker.desk(), requireKind(caller, 'lobby')),
  ),
  implement(setLobbyClosed, ({ caller, body }) =>
    caller.kind === 'development'
      ? developmentNothing(matchmaker.desk(), caller)
      : closeLobby(matchmaker.desk(), requireKind(caller, 'lobby'), body.is_closed),
  ),
  implement(setLobbyState, ({ caller, body }) =>
    caller.kind === 'development'
      ? developmentNothing(matchmaker.desk(), caller)
      : writeLobbyState(matchmaker.desk(), requireKind(caller, 'lobby'), body),
  ),
  implement(getLobbyState, ({ caller, params }) =>
    caller.kind === 'development'
      ? developmentNothing(matchmaker.desk(), caller)
      : stateOfLobby(matchmaker.desk(), requireLobbyOrNamespace(caller), params.lobby_id),
  ),
  implement(listLobbies, ({ caller, query, address }) =>
    caller.kind === 'development'
      ? developmentList(matchmaker.desk(), caller, query)
      : listOpenLobbies(matchmaker.desk(), requireKind(caller, 'namespace').namespace_id, address, query),
  ),
]

/** So that it can be explained how it ended. */
async function told<T>(
  matchmaker: Matchmaker,
  operation: string,
  request: SeatRequest,
  take: (visitor: Requester) => Promise<T>,
): Promise<T> {
  const visitor = await requesterOf(matchmaker.namespaces, request)
  const { ray_id, body } = request
  return matchmaker.desk().teller.tell({ ray_id, operation, body }, visitor, () => take(visitor))
}

/** The contract has let nobody else in; this tells the compiler so. */
export function requireKind<K extends Caller['kind']>(caller: Caller, kind: K): CallerOf<K> {
  if (caller.kind !== kind) throw new ApiError('API_FORBIDDEN')
  return caller as CallerOf<K>
}

function requireLobbyOrNamespace(caller: Caller): CallerOf<'lobby' | 'namespace'> {
  if (caller.kind !== 'namespace' && caller.kind !== 'lobby') throw new ApiError('API_FORBIDDEN')
  return caller
}
