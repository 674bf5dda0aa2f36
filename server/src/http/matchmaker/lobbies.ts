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
import { createSeat, findSeat, joinSeat, type Visitor } from '../../matchmaker/desk.ts'
import { closeLobby, listOpenLobbies, readyLobby, stateOfLobby, writeLobbyState } from '../../matchmaker/lobbies.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'

export const lobbies = (matchmaker: Matchmaker): Implementation[] => [
  implement(findLobby, (request) => findSeat(matchmaker.desk(), visitorOf(request), request.body)),
  implement(joinLobby, (request) => joinSeat(matchmaker.desk(), visitorOf(request), request.body)),
  implement(createLobby, (request) => createSeat(matchmaker.desk(), visitorOf(request), request.body)),
  implement(setLobbyReady, ({ caller }) => readyLobby(matchmaker.desk(), requireKind(caller, 'lobby'))),
  implement(setLobbyClosed, ({ caller, body }) =>
    closeLobby(matchmaker.desk(), requireKind(caller, 'lobby'), body.is_closed),
  ),
  implement(setLobbyState, ({ caller, body }) =>
    writeLobbyState(matchmaker.desk(), requireKind(caller, 'lobby'), body),
  ),
  implement(getLobbyState, ({ caller, params }) =>
    stateOfLobby(matchmaker.desk(), requireLobbyOrNamespace(caller), params.lobby_id),
  ),
  implement(listLobbies, ({ caller, query }) =>
    listOpenLobbies(matchmaker.desk(), requireKind(caller, 'namespace').namespace_id, query),
  ),
]

function visitorOf(request: Omit<Visitor, 'caller'> & { caller: Caller }): Visitor {
  const { caller, client, idempotency_key, isGone } = request
  return { caller: requireKind(caller, 'namespace'), client, idempotency_key, isGone }
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
