// The tokens that lobbies start with. The platform's own machine issues them; a node that has joined has no signing keys, and
// asks the platform for each. The platform issues one only for a lobby that runs on that node.
import { postOverLink } from '../link-call.ts'
import type { Keys } from './keys.ts'

/** The token is valid for its lobby only, and the matchmaker refuses it once the lobby has stopped. */
export const LOBBY_TOKEN_LIFETIME_MS = 365 * 24 * 3_600_000

export type LobbyTokens = {
  /** For a lobby whose run is recorded. Rejects while the platform cannot be reached. */
  issue: (lobby: { lobby_id: string; namespace_id: string }) => Promise<string>
}

export function ownLobbyTokens(keys: Keys, now: () => number): LobbyTokens {
  return {
    issue: async ({ lobby_id, namespace_id }) =>
      keys.issue({ kind: 'lobby', lobby_id, namespace_id }, { now_ms: now(), lifetime_ms: LOBBY_TOKEN_LIFETIME_MS }),
  }
}

/** `link`: the unix socket of the link. */
export function linkedLobbyTokens(link: string): LobbyTokens {
  return {
    async issue({ lobby_id }) {
      const refusal = 'The platform gives no token for the lobby'
      const call = { path: '/lobby-tokens', body: { lobby_id }, refusal }
      return (await postOverLink<{ token: string }>(link, call)).token
    },
  }
}
