import {
  exportLobbyLogs,
  exportMatchmakerLobbyHistory,
  getLobbyLogs,
  getNamespaceLobby,
  listNamespaceLobbies,
} from '@musterhost/contract'
import * as history from '../../cloud/lobbies/history.ts'
import { exportLog, type LogReaders, lobbyLogs } from '../../cloud/lobbies/logs.ts'
import { type Implementation, implement } from '../implement.ts'

export const logs = (readers: LogReaders): Implementation[] => [
  implement(getLobbyLogs, ({ ctx, caller, params, query, isGone }) =>
    lobbyLogs(ctx, readers, caller, params, query, isGone),
  ),
  implement(exportLobbyLogs, ({ ctx, caller, params, body }) => exportLog(ctx, caller, params, body.stream)),
  implement(exportMatchmakerLobbyHistory, ({ ctx, caller, params, body }) =>
    history.exportHistory(ctx, caller, { ...params, ...body }),
  ),
  implement(listNamespaceLobbies, ({ ctx, caller, params, query }) =>
    history.listNamespaceLobbies(ctx, caller, params, query.before_create_ts),
  ),
  implement(getNamespaceLobby, ({ ctx, caller, params }) => history.findNamespaceLobby(ctx, caller, params)),
]
