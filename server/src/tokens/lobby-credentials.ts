// What only the platform can give to a lobby that starts: its token, and the secrets of its game. The platform's own machine
// has the keys for both. A node that has joined has neither, and asks the platform for each lobby. The platform gives them only
// for a lobby that runs on that node.
import type { Pool } from 'pg'
import { postOverLink } from '../wire/link-call.ts'
import type { Keys } from './keys.ts'
import { GAME_SECRETS } from './sealed-columns.ts'
import type { Seals } from './seals.ts'

/** The token is valid for its lobby only, and the matchmaker refuses it once the lobby has stopped. */
export const LOBBY_TOKEN_LIFETIME_MS = 365 * 24 * 3_600_000

/** `secrets`: by the name of the environment variable. */
export type LobbyCredentials = { token: string; secrets: Readonly<Record<string, string>> }

/** `has_secrets`: whether its game or its namespace has any. */
type Lobby = { lobby_id: string; namespace_id: string; game_id: string | null; has_secrets: boolean }

export type CredentialSource = {
  /**
   * For a lobby whose run is recorded. Rejects with UnreadableSecret when a secret cannot be decrypted, and with another error
   * while the platform cannot be reached.
   */
  issue: (lobby: Lobby) => Promise<LobbyCredentials>
}

/** A secret of a game cannot be decrypted: the keys of the data folder are not those with which it was stored. */
export class UnreadableSecret extends Error {
  constructor(name: string, cause: unknown) {
    super(`The secret ${name} of the game cannot be decrypted. Set it again: muster secrets set ${name}`, { cause })
  }
}

export function ownCredentials(keys: Keys, seals: Seals, pool: Pool, now: () => number): CredentialSource {
  return {
    issue: async ({ lobby_id, namespace_id, game_id, has_secrets }) => {
      const subject = { kind: 'lobby' as const, lobby_id, namespace_id }
      const token = keys.issue(subject, { now_ms: now(), lifetime_ms: LOBBY_TOKEN_LIFETIME_MS })
      const is_without = !has_secrets || game_id === null
      return { token, secrets: is_without ? {} : await openSecrets(pool, seals, { game_id, namespace_id }) }
    },
  }
}

/** `link`: the unix socket of the link. */
export function linkedCredentials(link: string): CredentialSource {
  return {
    async issue({ lobby_id }) {
      const refusal = 'The platform gives no token for the lobby'
      const call = { path: '/lobby-tokens', body: { lobby_id }, refusal }
      // A platform of an older release sends the token only.
      const { token, secrets = {} } = await postOverLink<{ token: string } & Partial<LobbyCredentials>>(link, call)
      return { token, secrets }
    },
  }
}

/** The secrets of the namespace, and those of the game that it does not replace. */
export async function openSecrets(
  pool: Pool,
  seals: Seals,
  { game_id, namespace_id }: { game_id: string; namespace_id: string },
): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ secret_id: string; name: string; value: string }>({
    name: 'lobby-secrets',
    text: `select distinct on (name) secret_id, name, value from game_secrets
      where game_id = $1 and (namespace_id is null or namespace_id = $2) order by name, namespace_id nulls last`,
    values: [game_id, namespace_id],
  })
  const entries = rows.map(({ secret_id, name, value }): [string, string] => {
    try {
      return [name, seals.open(GAME_SECRETS.purposeOf(secret_id), value)]
    } catch (error) {
      throw new UnreadableSecret(name, error)
    }
  })
  return Object.fromEntries(entries)
}
