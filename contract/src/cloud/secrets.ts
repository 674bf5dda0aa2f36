// Secrets of a game: environment variables of its lobbies whose values no call returns. A secret holds in the whole game, or in
// one namespace only. Lobbies that start after a change have it.
import Type from 'typebox'
import { ENV_NAME_PATTERN } from '../env-names.ts'
import { GameId, NamespaceId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, Empty, object, Timestamp } from '../records.ts'
import { Creator } from './creator.ts'

/** Secrets of a game without a namespace, and secrets of one namespace. */
export const SECRETS_MAX = 64
/** Bytes of one value. */
export const SECRET_BYTES_MAX = 32 * 1024
/** Bytes of all values of a game without a namespace, and of one namespace. Both fit into the environment of a process. */
export const SECRETS_BYTES_MAX = 64 * 1024

const SecretName = Type.String({
  pattern: ENV_NAME_PATTERN,
  description:
    'Name of the environment variable: letters, digits and underscores, at most 64, not beginning with a digit. Names that the platform sets are refused: `PLATFORM_*`, `PORT`, `PORT_*`, `HOST`, `PUBLIC_HOST_*`, `PUBLIC_PORT_*`, `PUBLIC_URL_*`, `PATH`, `HOME` and `TMPDIR`. Example: `PAYMENT_KEY`.',
})
const OnlyNamespace = Type.Optional(
  described(NamespaceId, 'Namespace of the secret. Absent: the secret holds in all namespaces of the game.'),
)
const one = { game_id: GameId, name: SecretName }
const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const

export const GameSecret = object(
  {
    name: SecretName,
    namespace_id: OnlyNamespace,
    update_ts: Timestamp('When the value was last set.'),
    set_by: Type.Optional(
      Creator('The caller who set the value last. Absent for values from before this was recorded.'),
    ),
  },
  'A secret without its value.',
)

export const listGameSecrets = operation({
  ...defaults,
  id: 'games.secrets.listGameSecrets',
  method: 'GET',
  path: '/cloud/games/{game_id}/secrets',
  summary: 'Lists the secrets of a game and of its namespaces by name. No operation returns a value.',
  role: 'viewer',
  params: object({ game_id: GameId }),
  response: object({
    secrets: Type.Array(GameSecret, {
      description: 'Sorted by name. Of one name, the secret of the whole game is first.',
    }),
  }),
  errors: ['GAME_NOT_FOUND'],
})

export const setGameSecret = operation({
  ...defaults,
  id: 'games.secrets.setGameSecret',
  method: 'PUT',
  path: '/cloud/games/{game_id}/secrets/{name}',
  summary:
    'Sets a secret, or replaces its value. Lobbies that start from now on have it in their environment; running lobbies keep the value before. A secret of the namespace takes precedence over one of the game, and both over `env` of the version config.',
  role: 'developer',
  params: object(one),
  body: object({
    value: Type.String({
      minLength: 1,
      maxLength: SECRET_BYTES_MAX,
      pattern: '^[^\\u0000]*$',
      description: `Text without NUL, at most ${SECRET_BYTES_MAX} bytes in UTF-8. It is stored encrypted.`,
    }),
    namespace_id: OnlyNamespace,
  }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const removeGameSecret = operation({
  ...defaults,
  id: 'games.secrets.removeGameSecret',
  method: 'DELETE',
  path: '/cloud/games/{game_id}/secrets/{name}',
  summary: 'Removes a secret. Running lobbies keep it.',
  role: 'developer',
  params: object(one),
  query: object({ namespace_id: OnlyNamespace }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'SECRET_NOT_FOUND'],
})
