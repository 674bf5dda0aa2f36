// The standard input of a lobby's server, for the developers of the game. The version config has to allow it.
import Type from 'typebox'
import { GameId, LobbyId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Empty, object } from '../records.ts'

/** Characters of one line of input. */
export const LOBBY_INPUT_LENGTH_MAX = 1_000

export const writeLobbyInput = operation({
  id: 'games.matchmaker.writeLobbyInput',
  service: 'api',
  method: 'POST',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/input',
  summary:
    "Writes a line to the standard input of a lobby's server, and a note of it into the lobby's standard error. The version config must have `docker.standard_input`. Returns when the line is in the server's pipe.",
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'developer',
  params: object({ game_id: GameId, lobby_id: LobbyId }),
  body: object({
    text: Type.String({
      maxLength: LOBBY_INPUT_LENGTH_MAX,
      pattern: '^[^\\u0000-\\u0008\\u000a-\\u001f\\u007f-\\u009f]*$',
      description:
        'The line, at most 1,000 characters, without control characters except tab. The platform adds the newline. Example: `say The server restarts in five minutes`.',
    }),
  }),
  response: Empty,
  errors: [
    ...(['GAME_NOT_FOUND', 'LOBBY_NOT_FOUND', 'LOBBY_INPUT_DISABLED', 'LOBBY_NOT_RUNNING'] as const),
    ...(['LOBBY_INPUT_NOT_READ', 'LOBBY_RUNNER_NOT_REACHABLE', 'API_NOT_AVAILABLE'] as const),
  ],
})
