import { changeOwnLobby, setLobbyPlayers, stopOwnLobby, watchOwnLobby } from '@musterhost/contract'
import { changeOwnLobbyOf, ownLobby, reportPlayers, stopOwn } from '../../matchmaker/calls/own-lobby.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'

export const ownLobbies = ({ context }: Matchmaker): Implementation[] => [
  implement(watchOwnLobby, {
    lobby: ({ caller, query, isGone }) => ownLobby(context(), caller, query.watch_index, isGone),
  }),
  implement(setLobbyPlayers, { lobby: ({ caller, body }) => reportPlayers(context(), caller, body.player_ids) }),
  implement(changeOwnLobby, { lobby: ({ caller, body }) => changeOwnLobbyOf(context(), caller, body) }),
  implement(stopOwnLobby, { lobby: ({ caller }) => stopOwn(context(), caller) }),
]
