// Games whose finds, joins and creates are verified by an endpoint of the game.
import type { TestContext } from 'node:test'
import { LONG_MS, TRUSTING } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import type { GameModes } from '../support/platform-verbs.ts'
import { startGameEndpoint } from './game-endpoint.ts'

export const SETTINGS = { ...TRUSTING, MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8' }
export const NO = 'MATCHMAKER_VERIFICATION_FAILED'
export const MANY = { max_players_per_client: 1_000, lobby_count_max: 1_000 }

type Mode = GameModes[string]

/** A game mode whose every action is verified there. */
export function verifiedMode(url: string, changes: Mode = {}): Mode {
  const verification_config = { url, headers: { 'X-Gate-Key': 'abc' } }
  return {
    idle_grace_ms: LONG_MS,
    actions: {
      find: { enabled: true, verification_config },
      join: { enabled: true, verification_config },
      create: { enabled: true, enable_public: true, verification_config },
    },
    ...changes,
  }
}

export async function startVerified(t: TestContext, changes: Mode = {}) {
  const endpoint = await startGameEndpoint(t)
  const platform = await startPlatform(t, { env: SETTINGS })
  platform.playServers()
  const game = await platform.game({
    matchmaker: {
      game_modes: { default: verifiedMode(endpoint.url, changes), plain: { idle_grace_ms: LONG_MS, ...changes } },
    },
    limits: MANY,
  })
  return { endpoint, platform, game }
}
